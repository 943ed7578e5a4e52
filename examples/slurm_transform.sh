#!/usr/bin/env bash
# Embed many rows by an array of jobs: sbatch slurm_transform.sh MODEL DATA FOLDER
#
# DATA is what dre reads: a file, a folder, or a pattern in quotes. Each job writes its own pieces to FOLDER and skips those that are
# there. Submit it again to finish what failed or was preempted.
#SBATCH --job-name=dre-transform
#SBATCH --array=0-15
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail

model=$1
data=$2
folder=$3

srun dre transform "$model" "$data" -o "$folder" --threads "$SLURM_CPUS_PER_TASK" \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
