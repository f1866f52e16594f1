# A job that takes locks while it runs: one of its job and rank, and one for each half of a GPU that
# it was given. Locks end with the last process that has them, however that ends, so one that cannot
# be had means that something runs which must not.
#
# job.sh FOLDER NAME CODE SECONDS SHARE
folder=$1 name=$2${HOSTLER_ARRAY_INDEX:+_$HOSTLER_ARRAY_INDEX}.$RANK code=$3 seconds=$4 share=$5
node=${HOSTLER_SOCKET%/leases/*}
gpu=$folder/${node##*/}.gpu

fault() {
    echo "$name, lease $HOSTLER_LEASE, GPUs $CUDA_VISIBLE_DEVICES: $1" >> "$folder/faults"
}

# take NUMBER FILE: locks a file by this descriptor.
take() {
    eval "exec $1> \"\$2\"" && flock -n "$1"
}

take 3 "$folder/$name.lock" || fault "runs twice"
if [ "$share" = half ]; then
    half=$gpu$CUDA_VISIBLE_DEVICES
    take 4 "$half.a" || take 4 "$half.b" || fault "its half is taken"
else
    number=4
    IFS=,
    for one in $CUDA_VISIBLE_DEVICES; do
        take $number "$gpu$one.a" || fault "half a of GPU $one is taken"
        take $((number + 1)) "$gpu$one.b" || fault "half b of GPU $one is taken"
        number=$((number + 2))
    done
fi
echo "begin $HOSTLER_LEASE" >> "$folder/$name"
sleep "$seconds"
echo "end $HOSTLER_LEASE" >> "$folder/$name"
exit "$code"
