#!/usr/bin/env bash
# setup.sh: what a fresh Debian or Ubuntu lacks. Asks the package manager only for what is missing, so it is quick
# when nothing is. Needs root for that (or sudo).
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

GO=1.26.6 # the newest that anything built here asks for

has() { command -v "$1" >/dev/null 2>&1; }
library() { has pkg-config && pkg-config --exists "$1"; }

missing=()
want() { # COMMAND PACKAGE
  has "$1" || missing+=("$2")
}
want git git
want curl curl
want jq jq
want gcc gcc
want make make
want flock util-linux
want pkg-config pkg-config
want mmdebstrap mmdebstrap
want tmux tmux
want ip iproute2
want ps procps
want shellcheck shellcheck
want chromium chromium
[[ -e /usr/include/gnu/libc-version.h || -n $(compgen -G '/usr/include/*/gnu/libc-version.h') ]] || missing+=(libc6-dev)
library libseccomp || missing+=(libseccomp-dev)
docker_ready || want dockerd docker.io
has docker || missing+=(docker.io)
[[ -x /usr/bin/python3 ]] || missing+=(python3)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
has npm || missing+=(nodejs npm)
has go || missing+=(golang-go)

as_root() { if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi; }

if ((${#missing[@]} > 0)); then
  say "    installing: ${missing[*]}"
  has apt-get || die "these are missing and there is no apt-get to install them: ${missing[*]}"
  as_root apt-get update -q >"$CACHE/logs/apt.log" 2>&1 || { tail -n 20 "$CACHE/logs/apt.log" >&2; die "apt-get update failed"; }
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" \
    >>"$CACHE/logs/apt.log" 2>&1 || { tail -n 20 "$CACHE/logs/apt.log" >&2; die "apt-get install failed"; }
fi

# Debian's Go may be older than what is built here; a newer toolchain is a Go module like any other.
have=$(go env GOVERSION)
if ! printf '%s\n%s\n' "$GO" "${have#go}" | sort -V -C; then
  [[ $(uname -m) == x86_64 ]] || die "Go $GO or newer is needed, found ${have#go}; install it by hand"
  say "    Go ${have#go} is too old; fetching $GO"
  if [[ ! -x $CACHE/go-toolchain/bin/go ]]; then
    published=$(cd / && GOTOOLCHAIN=local GOFLAGS=-mod=mod go mod download -json "golang.org/toolchain@v0.0.1-go$GO.linux-amd64" | jq -r .Dir)
    rm -rf "$CACHE/go-toolchain.new"
    cp -r "$published" "$CACHE/go-toolchain.new"
    chmod -R u+w "$CACHE/go-toolchain.new"
    chmod +x "$CACHE"/go-toolchain.new/bin/* "$CACHE"/go-toolchain.new/pkg/tool/*/*
    mv "$CACHE/go-toolchain.new" "$CACHE/go-toolchain"
  fi
  ln -sf "$CACHE/go-toolchain/bin/go" "$BIN/go"
fi
