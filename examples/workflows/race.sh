#!/bin/sh
# The places of race.yaml: sh race.sh PLACE KEY
set -eu
place=$1 key=$2
case $place in
cache) # is quick, and knows nothing
    echo "the cache does not have $key" >&2
    exit 1
    ;;
replica) # is good enough
    sleep 0.3
    ;;
origin) # knows for sure, some day
    sleep 60
    ;;
esac
printf '{"from": "%s", "value": "the value of %s"}\n' "$place" "$key"
