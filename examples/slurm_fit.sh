#!/usr/bin/env bash
# Fit one model by the GPUs of several nodes: sbatch slurm_fit.sh DATA MODEL CHECKPOINTS
#
# All nodes must reach the three paths. A process that dies is started again with all others, from the last checkpoint; so is the
# whole job if it is submitted again.
#SBATCH --job-name=dre-fit
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=12:00:00
#SBATCH --requeue
set -euo pipefail

data=$1
model=$2
checkpoints=$3
first_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)

srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node "${SLURM_GPUS_ON_NODE:-1}" --max-restarts 3 \
    --rdzv-backend c10d --rdzv-endpoint "$first_node:29500" --rdzv-id "$SLURM_JOB_ID" \
    -m dre fit "$data" -o "$model" --checkpoint "$checkpoints" --resume --force --seed 0
