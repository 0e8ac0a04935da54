# Enter a Debian root in a mount namespace of its own, and run the rest of the arguments there.
set -e
root=$1 driver=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
for each in /proc /sys /dev "$driver"; do
  mkdir -p "$root$each"
  mount --rbind "$each" "$root$each"
done
for each in /run /tmp; do
  mount -t tmpfs tmpfs "$root$each"
done
mkdir -p "$root/outside"
cd "$root"
pivot_root . outside
umount --lazy /outside
exec "$@"
