# shellcheck shell=sh
# Waits for the link to the other rack, which containerlab makes once the containers are there, and becomes `weir "$@"`.
set -eu
until [ "$(cat /sys/class/net/vx0/operstate 2>/dev/null)" = up ]; do sleep 0.2; done
exec weir "$@"
