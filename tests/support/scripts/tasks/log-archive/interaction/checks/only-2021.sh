#!/bin/bash
# 0: nothing but the archive of 2021 is public; 1: something else is.
for file in /app/public/*; do
  [ -e "$file" ] || continue
  [ "${file##*/}" = 2021.log.gz ] || exit 1
done
exit 0
