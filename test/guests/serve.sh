# Sourced by a guest's init, under any shell: runs the commands that the host sends over virtio-serial ports, one at a time over each:
#   host:  RUN <nonce> <seconds it may take> <base64 of the command>\n
#   guest: \n@@B <nonce>\n <its output, raw> \n@@E <nonce> <its status; 124: it took longer>\n
# $shell runs them.
serve() {
  exec 3<>"$1"
  command=/tmp/.command$2
  late=/tmp/.late$2
  while read -r tag nonce limit encoded <&3; do
    [ "$tag" = RUN ] || continue
    printf '\n@@B %s\n' "$nonce" >&3
    echo "$encoded" | base64 -d >"$command"
    rm -f "$late"
    setsid "$shell" "$command" </dev/null >&3 2>&1 3>&- &
    child=$!
    setsid "$shell" -c "sleep $limit; : >$late; kill -KILL -$child" </dev/null >/dev/null 2>&1 3>&- &
    watch=$!
    wait $child
    status=$?
    kill -KILL -$watch
    wait $watch
    [ -e "$late" ] && status=124
    printf '\n@@E %s %d\n' "$nonce" $status >&3
  done
}

# Serves until the guest ends.
serve_all() {
  number=0
  for port in /sys/class/virtio-ports/*; do
    serve "/dev/${port##*/}" $number 2>/dev/null &
    number=$((number + 1))
  done
  echo "guest: ready"
  while :; do sleep 1000; done
}
