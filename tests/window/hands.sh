# Run on the screen of a script that uses mouse.py, in the folder shared with it: does with xdotool what is asked for there.
for _ in $(seq 12000); do
  [[ -e $FOLDER/found.json ]] && break
  if [[ -e $FOLDER/asked ]]; then
    xdotool $(cat "$FOLDER/asked")
    rm "$FOLDER/asked"
  fi
  sleep 0.05
done
