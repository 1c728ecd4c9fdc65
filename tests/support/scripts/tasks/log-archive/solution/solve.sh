#!/bin/bash
set -euo pipefail
cat > /app/archive.sh <<'SCRIPT'
#!/bin/bash
set -euo pipefail
level=$(sed -n 's/^level *= *//p' /app/archive.conf)
mkdir -p /app/archive
for log in /app/logs/*.log; do
  gzip -c "-$level" "$log" > "/app/archive/$(basename "$log").gz"
done
SCRIPT
chmod +x /app/archive.sh
sed -i 's/^level *=.*/level = 9/' /app/archive.conf
/app/archive.sh
for log in /app/logs/*.log; do printf '%s.gz\t%s\n' "$(basename "$log")" "$(wc -l < "$log")"; done > /app/archive/INDEX.txt
/app/bin/publish.sh 2021
echo "archived: the logs of 2021 to 2023" >> /app/NOTES.txt
