#!/bin/sh
# Makes the links that let `hostler` answer to the names of Slurm's commands.
#
#   link.sh [FOLDER] [PROGRAM]
#
# FOLDER is /usr/local/bin and PROGRAM the `hostler` on PATH when left out. What is there already is
# left alone: a real Slurm is not replaced.
set -eu
folder=${1:-/usr/local/bin}
program=${2:-$(command -v hostler)}
for name in sbatch squeue scancel sinfo srun; do
    if [ -e "$folder/$name" ] || [ -L "$folder/$name" ]; then
        echo "$folder/$name is there already" >&2
    else
        ln -s "$program" "$folder/$name"
    fi
done
