#!/bin/sh
# Stands in for a model and a judge in agent.yaml, without either:
#   sh agent.sh model GOAL DRAFT FEEDBACK     the goal, or the draft without its first word
#   sh agent.sh judge DRAFT MAX               is the draft short enough?
set -eu

quoted() { # a text as JSON
    printf '"%s"' "$(printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

case $1 in
model)
    goal=$2 draft=$3 feedback=$4
    if [ -n "$feedback" ]; then
        text=${draft#* } # it listens: one word less
    else
        text=$goal
    fi
    printf '{"text": %s}\n' "$(quoted "$text")"
    ;;
judge)
    draft=$2 max=$3
    over=$((${#draft} - max))
    if [ "$over" -le 0 ]; then
        printf '{"passed": true, "feedback": ""}\n'
    else
        printf '{"passed": false, "feedback": "too long by %s"}\n' "$over"
    fi
    ;;
*)
    echo "no part $1" >&2
    exit 2
    ;;
esac
