#!/bin/sh
# The README's two commands in a minimal Debian 12 (python3, venv, git, make, certificates; no Node,
# no Terraform), as a user without rights, from a path with a blank in it. Needs root and
# mmdebstrap. Packages are reached the way this machine reaches them: its certificates and the
# variables below go in.
set -eu
forwarded="PIP_CERT PIP_INDEX_URL PIP_DEFAULT_TIMEOUT NODE_EXTRA_CA_CERTS NPM_CONFIG_REGISTRY
  HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy"

[ "$(id -u)" = 0 ] || { echo "skipped: test-fresh needs root (it makes a Debian tree)"; exit 0; }
if ! command -v mmdebstrap >/dev/null; then
  echo "==> installing mmdebstrap"
  apt-get update -qq && apt-get install -y -qq mmdebstrap >/dev/null
fi
here=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd -P)
tree=$(mktemp -d "${TMPDIR:-/tmp}/specrack-fresh.XXXXXX")
root=$tree/root
cleanup() {
  # The demo's servers go with the tree.
  chroot "$root" su - newcomer -c "cd 'a clone' && .venv/bin/cdktf destroy local" \
    >/dev/null 2>&1 || true
  for at in dev/pts dev/shm dev proc; do umount -l "$root/$at" 2>/dev/null || true; done
  # Never through a mount that would not go.
  rm -rf --one-file-system "$tree"
}
trap cleanup EXIT INT TERM

echo "==> a minimal Debian 12"
mmdebstrap --quiet --variant=minbase \
  --include=python3,python3-venv,git,make,ca-certificates bookworm "$root"
mount -t proc proc "$root/proc"
for at in dev dev/pts dev/shm; do mount --bind "/$at" "$root/$at"; done
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

echo "==> a user, a clone"
chroot "$root" useradd --create-home --shell /bin/sh newcomer
git clone --quiet "$here" "$root/home/newcomer/a clone"
chroot "$root" chown -R newcomer /home/newcomer

environment="export PATH=/usr/local/bin:/usr/bin:/bin"
for name in $forwarded; do
  value=$(printenv "$name" || true)
  [ -z "$value" ] || environment="$environment $name='$value'"
done
for target in ${SPECRACK_FRESH_TARGETS:-demo demo test}; do
  echo "==> make $target"
  start=$(date +%s)
  chroot "$root" su - newcomer -c "$environment; cd 'a clone' && make $target"
  echo "==> make $target took $(($(date +%s) - start)) s"
  [ "$target" = demo ] || continue
  # What a destroy leaves outside the clone and the caches of pip and npm: nothing.
  left=$(chroot "$root" su - newcomer -c "cd 'a clone' && \
    find /home/newcomer /tmp /var/tmp -type f -newer README.md -user newcomer \
      ! -path '/home/newcomer/a clone/*' ! -path '/home/newcomer/.cache/pip/*' \
      ! -path '/home/newcomer/.npm/*' 2>/dev/null" || true)
  echo "==> files outside the clone: ${left:-none}"
  [ -z "$left" ]
done
