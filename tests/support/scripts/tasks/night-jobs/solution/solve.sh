#!/bin/bash
set -euo pipefail
conf=/app/schedule.conf
sed -i -e 's/^cleanup = .*/&\nsync = 03:30/' -e 's/^to = .*/to = night@office.example/' -e 's/^subject = .*/subject = Night jobs/' $conf
printf '\n[limits]\nretries = 3\n' >> $conf
sed -n '/^\[jobs\]/,/^\[mail\]/ s/^\([a-z]*\) = \([0-9:]*\)$/\2 \1/p' $conf | sort > /app/schedule.txt
