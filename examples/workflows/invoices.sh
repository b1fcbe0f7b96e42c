#!/bin/sh
# The steps of invoices.yaml: sh invoices.sh list FOLDER | add_up FILE | sum NUMBER...
set -eu
step=$1
shift
case $step in
list) # the names of the files, as a JSON list
    cd "$1"
    printf '['
    comma=
    for file in *.txt; do
        printf '%s"%s"' "$comma" "$file"
        comma=,
    done
    printf ']\n'
    ;;
add_up) # the last word of each line is an amount
    sum=0
    while read -r line; do
        sum=$((sum + ${line##* }))
    done <"$1"
    echo "$sum"
    ;;
sum)
    sum=0
    for number; do
        sum=$((sum + number))
    done
    echo "$sum"
    ;;
*)
    echo "no step $step" >&2
    exit 2
    ;;
esac
