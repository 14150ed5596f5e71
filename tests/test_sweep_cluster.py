#!/usr/bin/env python3
"""Shards of sweeps and evaluations on engines that clusters have: a GNU parallel list, and an array of Slurm jobs on a node of its own.

    tests/test_sweep_cluster.py MUC      from the source root
"""
import os
import shutil
import socket
import subprocess
import sys
import time

from cli import BRIEF, WORK, muc
from files import MUC, ROOT, Skip, run_tests

SWEEP = WORK / "sweep.ini"
SWEEP.write_text(f"[sweep]\nmodel = {ROOT / 'models/rescue'}\nbits = 4.6 4.8\nposition = 0 100 200\n[time]\ndram_mbs = 800 3200\n")


def need(*programs):
    if BRIEF:
        raise Skip("sanitizers: the sweep's own test runs shards, too")
    for program in programs:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            raise Skip(f"no {program}: scripts/setup ci installs it")


def check(folder):
    """The shards' folder is that of a sweep in one run."""
    if not (WORK / "whole").is_dir():
        muc("sweep", SWEEP, "-o", WORK / "whole")
    for name in ("sweep.csv", "sweep.html"):
        assert (folder / name).read_bytes() == (WORK / "whole" / name).read_bytes(), name


EVALUATION = ["eval", ROOT / "models/rescue", "--text", ROOT / "models/rescue/test.txt", "--window", "64", "--stride", "16", "--limit", "20", "--json"]


def check_merged(parts):
    """What merge makes of the shards' reports is the report of one run."""
    assert muc("merge", *parts, "--json")[0] == muc(*EVALUATION)[0]


def test_gnu_parallel_runs_shards():
    need("parallel")
    folder = WORK / "parallel"
    home = {**os.environ, "HOME": str(WORK)}  # where it remembers that it was run before
    command = " ".join(map(str, EVALUATION))
    subprocess.run(["parallel", "--will-cite", "--jobs", "2", f"{MUC} {command} --threads 1 --shard {{}}/3 > {WORK}/part{{}}.json", ":::", *"123"],
                   check=True, capture_output=True, timeout=200, env=home)
    check_merged(sorted(WORK.glob("part?.json")))
    subprocess.run(["parallel", "--will-cite", "--jobs", "2", str(MUC), "sweep", str(SWEEP), "-o", str(folder), "--threads", "1", "--shard",
                    "{}/5", ":::", *"12345"], check=True, capture_output=True, timeout=200, env=home)
    check(folder)


CONFIGURATION = """ClusterName=one
SlurmctldHost=localhost
SlurmctldPort={control}
SlurmdPort={daemon}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/control.pid
SlurmdPidFile={place}/daemon.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=one NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=one Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_cluster(place):
    """Both daemons of a cluster of one node; gives its environment and them."""
    for name in ("state", "spool"):
        (place / name).mkdir(parents=True)
    configuration = place / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(place=place, control=free_port(), daemon=free_port()))
    env = {**os.environ, "SLURM_CONF": str(configuration), "PATH": os.environ["PATH"] + ":/usr/sbin"}
    daemons = [subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for command in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "one"])]
    for _ in range(60):
        state = subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True)
        if state.stdout.strip() == "idle":
            return env, daemons
        time.sleep(0.5)
    return None, daemons


def test_an_array_of_slurm_jobs_runs_shards():
    need("sbatch", "slurmctld", "slurmd")
    if os.geteuid() != 0:
        raise Skip("a cluster of one's own takes root")
    folder, place = WORK / "slurm", WORK / "cluster"
    env, daemons = start_cluster(place)
    try:
        if not env:
            raise Skip("Slurm's daemons do not start here")
        command = f"{MUC} sweep {SWEEP} -o {folder} --threads 1 --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
        done = subprocess.run(["sbatch", "--wait", "--array=1-3", f"--output={place}/%a.txt", "--wrap", command], env=env,
                              capture_output=True, text=True, timeout=200)
        command = " ".join(map(str, EVALUATION))
        command = f"{MUC} {command} --threads 1 --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT > {place}/$SLURM_ARRAY_TASK_ID.json"
        subprocess.run(["sbatch", "--wait", "--array=1-3", f"--output={place}/e%a.txt", "--wrap", command], env=env, check=True,
                       capture_output=True, timeout=200)
        told = "".join(path.read_text() for path in sorted(place.glob("?.txt")))
        assert done.returncode == 0, done.stderr + told
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait(timeout=30)
    check(folder)
    check_merged(sorted(place.glob("?.json")))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
