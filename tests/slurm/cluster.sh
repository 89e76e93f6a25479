# SPDX-License-Identifier: ISC
# Sourced: a Slurm of one node of this machine, without systemd, as root, its files in $slurm. The node
# pretends to have four cores. A requeued job is held as long as credentials live, hence cred_expire.
slurm=$work/slurm
port=${SLURM_TEST_PORT:-17401}

cluster_up() {
    local host i
    host=$(hostname -s)
    mkdir -p "$slurm"/munge "$slurm"/state "$slurm"/spool "$slurm"/tmp
    chmod 755 "$work" "$slurm"
    chmod 700 "$slurm/munge"
    head -c 128 /dev/urandom >"$slurm/munge/key"
    chmod 400 "$slurm/munge/key"
    munged --force --key-file="$slurm/munge/key" --socket="$slurm/socket" --pid-file="$slurm/munged.pid" \
        --log-file="$slurm/munged.log" --seed-file="$slurm/munge/seed" --num-threads=2 >/dev/null 2>&1 || return 1
    cat >"$slurm/slurm.conf" <<CONFIG
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/socket,cred_expire=5
CredType=cred/munge
SlurmctldPort=$port
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmctldLogFile=$slurm/slurmctld.log
StateSaveLocation=$slurm/state
SlurmdPidFile=$slurm/slurmd.pid
SlurmdLogFile=$slurm/slurmd.log
SlurmdSpoolDir=$slurm/spool
TmpFS=$slurm/tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout=10
KillWait=5
JobRequeue=1
SlurmdParameters=config_overrides
SrunPortRange=$((port + 100))-$((port + 300))
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONFIG
    export SLURM_CONF=$slurm/slurm.conf
    slurmctld -c && slurmd -N n1 || return 1
    for i in $(seq 100); do
        [ "$(sinfo -h -N -o %t 2>/dev/null)" = idle ] && return 0
        sleep 0.1
    done
    tail -n 5 "$slurm"/*.log
    return 1
}

cluster_down() {
    local file
    for file in "$slurm"/slurmd.pid "$slurm"/slurmctld.pid "$slurm"/munged.pid; do
        [ ! -s "$file" ] || kill "$(cat "$file")" 2>/dev/null
    done
    sleep 0.5
}

# state_of JOB: its state and how often it was started again, as "COMPLETED 0".
state_of() {
    scontrol show job "$1" -o | sed -nE 's/.*JobState=([A-Z_]+).* Restarts=([0-9]+).*/\1 \2/p'
}

# expect_state JOB STATE...: within two minutes.
expect_state() {
    local job=$1 i
    shift
    for i in $(seq 600); do
        [ "$(state_of "$job")" != "$*" ] || return 0
        sleep 0.2
    done
    fail "job $job is '$(state_of "$job")', expected '$*': $(tail -n 20 ./*-"$job".log)"
    return 1
}

# submit SCRIPT ARGUMENTS...: its number in $job. The scripts ask for the nodes of a cluster; here is one.
submit() {
    job=$(sbatch --parsable --nodes=1 --ntasks-per-node=2 --cpus-per-task=1 "$@") || fail "not submitted: $*"
}
