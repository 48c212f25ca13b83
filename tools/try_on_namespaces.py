"""Try a run over ssh without a cluster: hosts as network namespaces of this machine.

Makes namespaces behind a bridge, each with an sshd and a key of its own: the first has a broker and
the database, each other broker and each Spark worker one of its own (the first worker's has the
master as well), and the sender the last, which installs this project from its wheel. What tells the
key stands in a file of ansible-vault. Then runs `espbench run --inventory` end to end and removes
everything again. Needs root, iproute2 and openssh-server (Debian: apt-get install openssh-server
iproute2). Standard library only.

    sudo .venv/bin/python tools/try_on_namespaces.py --queries q3 --brokers 2 --workers 2
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NETWORK = "10.77.0"
BRIDGE = "espbench0"
CONTROL = f"{NETWORK}.1"
SSHD = "/usr/sbin/sshd"


def main() -> None:
    """Make the hosts, run, clean up; leave with the run's exit code."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--queries", default="q3")
    options.add_argument("--duration", default="26")
    options.add_argument("--rate", default="1000")
    options.add_argument("--brokers", type=int, default=1, help="one to three")
    options.add_argument("--workers", type=int, default=0, help="of Spark; 0: Spark stays here")
    options.add_argument("--keep", action="store_true", help="leave the namespaces as they are")
    given = options.parse_args()
    refuse_where_it_cannot_work()
    hosts = plan_hosts(given.brokers, given.workers)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="espbench-ssh-")))
        work.chmod(0o755)
        if not given.keep:
            stack.callback(remove_hosts)
        remove_hosts()
        make_hosts(work, hosts, stack)
        inventory = write_inventory(work, hosts)
        environment = os.environ | {
            "ANSIBLE_VAULT_PASSWORD_FILE": str(write_vault(work)),
            "ESPBENCH_KAFKA__REPLICATION_FACTOR": str(given.brokers),
            "ESPBENCH_SPARK__CONF": '{"spark.executor.memory": "1g"}',
        }
        wheel, wheelhouse = build_wheels(work)
        say("the hosts are ready; running over ssh")
        command = [sys.executable, "-m", "espbench", "run", "--inventory", str(inventory)]
        command += ["--wheel", str(wheel), "--wheelhouse", str(wheelhouse)]
        command += ["--queries", given.queries, "--duration", given.duration, "--warmup", "5"]
        command += ["--rate", given.rate]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    sys.exit(code)


def refuse_where_it_cannot_work() -> None:
    """One line for each thing that is missing."""
    if os.geteuid() != 0:
        sys.exit("only root can make network namespaces; call it with sudo")
    for program, package in ((SSHD, "openssh-server"), ("ip", "iproute2"), ("ssh", "ssh")):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing; on Debian: apt-get install {package}")


def plan_hosts(brokers: int, workers: int) -> dict[str, str]:
    """Name to address of every host."""
    names = [broker(number) for number in range(brokers)]
    names += [worker(number) for number in range(workers)] + ["loadgen"]
    return {name: f"{NETWORK}.{number}" for number, name in enumerate(names, 2)}


def broker(number: int) -> str:
    """The host of a broker; the first has the database as well."""
    return f"broker{number + 1}" if number else "servers"


def worker(number: int) -> str:
    """The host of a Spark worker; the first has the master as well."""
    return f"spark{number + 1}"


def make_hosts(work: Path, hosts: dict[str, str], stack: ExitStack) -> None:
    """A bridge, and per host a namespace, a wire to the bridge, and an sshd."""
    keygen(work / "key")
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", f"{CONTROL}/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    # sshd's own requirement; a machine whose sshd never ran has no such directory.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    known = []
    for number, (name, address) in enumerate(hosts.items()):
        space, wire = namespace(name), f"espbench-v{number}"
        ip("netns", "add", space)
        ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("link", "set", wire, "master", BRIDGE, "up")
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"]):
            ip("-n", space, *words)
        ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        known.append(f"{address} {start_sshd(work, name, address, stack)}")
    (work / "known_hosts").write_text("\n".join(known) + "\n", encoding="utf-8")
    for address in hosts.values():
        wait_for_ssh(work, address)


def start_sshd(work: Path, name: str, address: str, stack: ExitStack) -> str:
    """Start one in the namespace; its public key."""
    host_key = work / f"host-{name}"
    keygen(host_key)
    config = work / f"sshd-{name}.conf"
    config.write_text(
        f"ListenAddress {address}:22\nHostKey {host_key}\nPidFile {work}/sshd-{name}.pid\n"
        f"AuthorizedKeysFile {work}/key.pub\nStrictModes no\nPermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n",
        encoding="utf-8",
    )
    command = ["ip", "netns", "exec", namespace(name), SSHD, "-D", "-e", "-f", str(config)]
    with (work / f"sshd-{name}.log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    stack.callback(server.wait)
    stack.callback(server.terminate)
    return " ".join(Path(f"{host_key}.pub").read_text(encoding="utf-8").split()[:2])


def wait_for_ssh(work: Path, address: str) -> None:
    """Return once a command runs there."""
    deadline = time.monotonic() + 20
    while run(["ssh", *ssh_options(work), f"root@{address}", "true"], check=False).returncode:
        if time.monotonic() > deadline:
            sys.exit(f"no ssh to {address}: {(work / 'known_hosts').read_text('utf-8')}")
        time.sleep(0.2)


def ssh_options(work: Path) -> list[str]:
    """Our key, and no other; the hosts' keys, and no others."""
    key = str(work / "key")
    return ["-i", key, "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={work}/known_hosts"]


def write_inventory(work: Path, hosts: dict[str, str]) -> Path:
    """The servers' hosts have this Python; the sender's has none with this project."""
    brokers = [name for name in hosts if name == "servers" or name.startswith("broker")]
    workers = [name for name in hosts if name.startswith("spark")]
    groups = {"kafka": brokers, "database": brokers[:1], "sender": ["loadgen"]}
    if workers:
        groups |= {"spark_master": workers[:1], "spark_workers": workers}
    common = f"-o UserKnownHostsFile={work}/known_hosts"
    lines = ["all:", "  vars:", "    ansible_user: root"]
    lines += [f'    ansible_ssh_common_args: "{common}"']
    lines += [f"    ansible_python_interpreter: {sys.executable}", "  hosts:"]
    for name, address in hosts.items():
        lines += [f"    {name}:", f"      ansible_host: {address}"]
        lines += [f"      espbench_home: {work}/hosts/{name}"]
        if name != "loadgen":
            lines += [f"      espbench_python: {sys.executable}"]
    lines += ["  children:"]
    for group, members in groups.items():
        lines += [f"    {group}:", "      hosts:", *(f"        {name}:" for name in members)]
    file = work / "inventory.yml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def write_vault(work: Path) -> Path:
    """What opens the hosts, readable by who has the vault's password alone; the password's file."""
    password = work / "vault-password"
    password.write_text(secrets.token_hex() + "\n", encoding="utf-8")
    password.chmod(0o600)
    file = work / "group_vars" / "all" / "vault.yml"
    file.parent.mkdir(parents=True)
    file.write_text(f"ansible_ssh_private_key_file: {work}/key\n", encoding="utf-8")
    program = str(Path(sys.executable).with_name("ansible-vault"))
    run([program, "encrypt", "--vault-password-file", str(password), str(file)])
    return password


def build_wheels(work: Path) -> tuple[Path, Path]:
    """The project's wheel, and those that the sender needs: the namespaces reach no index."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    source, wheels = work / "source", work / "wheels"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "results", "*.egg-info"))
    run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(work), str(source)])
    wheel = next(work.glob("espbench-*.whl"))
    say("fetching the wheels that the sender's host needs")
    constraints = work / "constraints.txt"
    constraints.write_text(run([*pip, "freeze", "--exclude-editable"]).stdout, encoding="utf-8")
    run([*pip, "download", "-d", str(wheels), "-c", str(constraints), f"{wheel}[kafka,datagen]"])
    return wheel, wheels


def remove_hosts() -> None:
    """Remove what we made, or what an earlier try left."""
    spaces = run(["ip", "netns", "list"], check=False).stdout.split()
    for space in (each for each in spaces if each.startswith(namespace(""))):
        # Sessions that ssh keeps open for a while would keep the namespace. Its wire goes with it.
        for pid in run(["ip", "netns", "pids", space], check=False).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run(["ip", "netns", "del", space], check=False)
    run(["ip", "link", "del", BRIDGE], check=False)


def namespace(name: str) -> str:
    """The namespace of a host."""
    return f"espbench-{name}"


def keygen(path: Path) -> None:
    """A key without a passphrase, for this try alone."""
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)])


def ip(*words: str) -> None:
    """One change of the network."""
    run(["ip", *words])


def run(command: list[str], *, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a program quietly; stop with its words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(f"espbench: {text}\n")


if __name__ == "__main__":
    main()
