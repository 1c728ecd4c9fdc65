#!/bin/bash
# build-toolkit.sh DEST: copies this system's Python and tmux with everything they load into DEST. They are started
# through the copied loader, so the image they are mounted into needs no libc, no shell and no /etc:
#   DEST/bin/clean DEST/lib/ld-linux-x86-64.so.2 --argv0 DEST/bin/python3 --library-path DEST/lib DEST/bin/python3.real -I ...
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

# The loader obeys LD_PRELOAD and its like, which an image may set for its own programs. `clean PROGRAM ARGUMENT...` starts a program
# with those names spelt with a first letter of "!" (the runner gives them back to what it starts). Static: 93 bytes of code.
python3 - "$dest/bin/clean" <<'PYTHON'
import os, struct, sys
code = bytes.fromhex("".join(line.split(";")[0] for line in """
  48 8b 3c 24                    ; mov rdi, [rsp]               argc
  48 8d 54 fc 10                 ; lea rdx, [rsp+rdi*8+16]      environment
  48 8d 74 24 10                 ; lea rsi, [rsp+16]            arguments after our own name
  49 89 d0                       ; mov r8, rdx
  49 b9 47 4c 49 42 43 5f 54 55  ; mov r9, "GLIBC_TU"           of GLIBC_TUNABLES
  49 8b 00                       ; next: mov rax, [r8]
  48 85 c0                       ; test rax, rax
  74 1f                          ; jz done
  49 83 c0 08                    ; add r8, 8
  48 8b 08                       ; mov rcx, [rax]               eight bytes lie there: the stack ends with a path and a null
  4c 39 c9                       ; cmp rcx, r9
  74 0e                          ; je mark
  81 e1 ff ff ff 00              ; and ecx, 0xffffff
  81 f9 4c 44 5f 00              ; cmp ecx, "LD_"
  75 de                          ; jne next
  c6 00 21                       ; mark: mov byte [rax], "!"
  eb d9                          ; jmp next
  48 8b 3e                       ; done: mov rdi, [rsi]
  48 85 ff                       ; test rdi, rdi
  74 07                          ; jz fail
  b8 3b 00 00 00                 ; mov eax, 59                  execve
  0f 05                          ; syscall
  bf 7f 00 00 00                 ; fail: mov edi, 127
  b8 e7 00 00 00                 ; mov eax, 231                 exit_group
  0f 05                          ; syscall
""".splitlines()))
base, headers = 0x400000, 64 + 56
size = headers + len(code)
elf = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, base + headers, 64, 0, 0, 64, 56, 1, 0, 0, 0)
segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
with open(sys.argv[1], "wb") as file:
    file.write(elf + segment + code)
os.chmod(sys.argv[1], 0o755)
PYTHON

cp -r /usr/lib/locale/C.utf8 "$dest/lib/locale/"
for entry in s/screen s/screen-256color x/xterm x/xterm-256color; do
  for root in /usr/share/terminfo /lib/terminfo; do
    if [[ -e $root/$entry ]]; then cp -L "$root/$entry" "$dest/share/terminfo/$entry"; fi
  done
done

# Compiled once here: the tree is read-only where it runs. By hash, so file times do not matter.
python3 -m compileall -q --invalidation-mode unchecked-hash "$dest/lib/$version"
LD_PRELOAD=/nowhere "$dest/bin/clean" "$dest/lib/ld-linux-x86-64.so.2" --argv0 "$dest/bin/python3" --library-path "$dest/lib" "$dest/bin/python3.real" -I -c \
  'import asyncio, ctypes, hashlib, json, lzma, os, selectors, signal, socket, ssl, sys, tarfile, zlib; assert sys.prefix == sys.argv[1], sys.prefix; assert os.environ["!D_PRELOAD"]' "$dest"
