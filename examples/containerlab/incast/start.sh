# shellcheck shell=sh
# Waits for the node's links, which containerlab makes once the container is there, and becomes `weir "$@"`.
set -eu
port=1
while [ "$port" -le "$CLAB_INTFS" ]; do
  until [ "$(cat "/sys/class/net/eth$port/operstate" 2>/dev/null)" = up ]; do sleep 0.2; done
  port=$((port + 1))
done
exec weir "$@"
