#!/bin/bash
# build-toolkit.sh DEST: copies this system's Python and tmux with everything they load into DEST. They are started
# through the copied loader, so the image they are mounted into needs no libc, no shell and no /etc:
#   DEST/lib/ld-linux-x86-64.so.2 --argv0 DEST/bin/python3 --library-path DEST/lib DEST/bin/python3.real -I ...
#   LOCPATH=DEST/lib/locale LC_ALL=C.UTF-8 TERMINFO=DEST/share/terminfo TERM=xterm \
#     DEST/lib/ld-linux-x86-64.so.2 --library-path DEST/lib DEST/bin/tmux.real -u -S SOCKET ...
set -euo pipefail
dest=$1
python=$(readlink -f "$(command -v python3)")
stdlib=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
version=$(basename "$stdlib") # python3.11

mkdir -p "$dest"/bin "$dest"/lib/locale "$dest"/share/terminfo/{s,x}
cp "$python" "$dest/bin/python3.real"
cp "$(command -v tmux)" "$dest/bin/tmux.real"

cp -r "$stdlib" "$dest/lib/$version"
rm -rf "$dest/lib/$version"/{test,idlelib,tkinter,ensurepip,lib2to3,distutils,pydoc_data,site-packages,dist-packages,config-*}
find "$dest" -name __pycache__ -prune -exec rm -rf {} +

# Every shared library that the programs and the extension modules name, and the loader that starts them.
cp "$(readlink -f /lib64/ld-linux-x86-64.so.2)" "$dest/lib/ld-linux-x86-64.so.2"
for file in "$dest"/bin/*.real "$dest/lib/$version"/lib-dynload/*.so; do ldd "$file"; done |
  awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | while read -r library; do cp -Ln "$library" "$dest/lib/"; done

cp -r /usr/lib/locale/C.utf8 "$dest/lib/locale/"
for entry in s/screen s/screen-256color x/xterm x/xterm-256color; do
  for root in /usr/share/terminfo /lib/terminfo; do
    if [[ -e $root/$entry ]]; then cp -L "$root/$entry" "$dest/share/terminfo/$entry"; fi
  done
done

# Compiled once here: the tree is read-only where it runs. By hash, so file times do not matter.
python3 -m compileall -q --invalidation-mode unchecked-hash "$dest/lib/$version"
"$dest/lib/ld-linux-x86-64.so.2" --argv0 "$dest/bin/python3" --library-path "$dest/lib" "$dest/bin/python3.real" -I -c \
  'import asyncio, ctypes, hashlib, json, lzma, os, selectors, signal, socket, ssl, sys, tarfile, zlib; assert sys.prefix == sys.argv[1], sys.prefix' "$dest"
