#!/bin/sh
# The steps of order.yaml: sh order.sh STEP ORDER [WHAT]
#
# Each step leaves one file in $BOOKS, and finds it there if it is called again: the same call twice
# is the same as once. In a real shop the order's number is the idempotency key of the payment.
set -eu
step=$1 order=$2 what=${3:-}
books=${BOOKS:-books}

if [ "$step" = ship ] && [ "$what" = Atlantis ]; then
    echo "no carrier goes to Atlantis" >&2
    exit 1
fi

mkdir -p "$books"
entry=$books/$order.$step
if [ ! -e "$entry" ]; then
    # Whole or not at all: written beside, then named.
    printf '%s %s by lease %s\n' "$order" "$what" "${TENURE_LEASE_ID:-none}" >"$entry.$$"
    mv "$entry.$$" "$entry"
fi
printf '"%s"\n' "$step"
