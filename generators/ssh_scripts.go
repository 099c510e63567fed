package generators

// The scripts of ssh take every value from the environment, like those of prefetch, and hold nothing that another
// program than the shell would read first. They lie in a ConfigMap, since horovodrun runs one of them by its path.
const (
	// sshScript is read by worker.sh and launcher.sh: it lets this user reach others by ssh. The keys are copied,
	// because ssh refuses a private key that its group may read, as it may every file of a Secret. What ssh starts does
	// not inherit the container's environment: it gets it from a file of sshd's, a line for each variable, so that
	// those of several lines are left out. It is read by the shell's number: the file of self is that of a process that
	// is about to run another program, and then empty. horovodrun and Intel's hydra hand over the launcher's besides.
	// The umask stays within the parentheses: checkpoints are others' to read.
	//
	// A container starts in a folder that its user may not enter, such as root's, and only what needs the folder's path
	// fails, on this host and on others: so the first to look says it.
	sshScript = `(cd "$PWD") 2>/dev/null || {
  echo "the working directory is $PWD, which this user cannot enter: start the image in one that everybody may read" >&2
  exit 1
}
need() {
  command -v "$1" || {
    echo "$1 is missing: the image needs openssh-server and openssh-client" >&2
    exit 1
  }
}
need ssh >/dev/null
need ssh-keyscan >/dev/null
(
  umask 077
  mkdir -p "$TEGEN_SSH_HOME/.ssh"
  cp -f "$TEGEN_SSH_KEYS/id_rsa" "$TEGEN_SSH_KEYS/authorized_keys" "$TEGEN_SSH_HOME/.ssh/"
  read -r pid rest </proc/self/stat
  printf '\1\n' >"$TEGEN_SSH_HOME/several"
  tr '\n\0' '\1\n' <"/proc/$pid/environ" | grep -v -f "$TEGEN_SSH_HOME/several" >"$TEGEN_SSH_HOME/.ssh/environment"
  cat >"$TEGEN_SSH_HOME/.ssh/config" <<END
Port $TEGEN_SSH_PORT
IdentityFile $TEGEN_SSH_HOME/.ssh/id_rsa
IdentitiesOnly yes
BatchMode yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
ConnectTimeout 10
ServerAliveInterval 30
LogLevel ERROR
END
)
`
	// workerScript runs sshd as a user without rights, who can only let itself in, or as root, whose sshd needs a
	// directory that packages of Debian make in a script of init's. MaxStartups is above any number of
	// processes that start at once. Two options are for some servers alone: UsePrivilegeSeparation for those before
	// 7.5, PerSourcePenalties for those since 9.8, which shut out whoever only looks whether they are there.
	//
	// The shell stays, as process 1 of the container. It collects what sshd leaves behind: horovodrun would not, and a
	// probe a second soon fills the table of processes. And it passes SIGTERM on to the training processes, which are
	// sshd's and would be killed before they have written a checkpoint. A worker never ends well, or one that is
	// evicted would count as done.
	workerScript = `set -eu
. "$TEGEN_SSH_DIR/ssh.sh"
(
  PATH=$PATH:/usr/sbin:/usr/local/sbin
  need sshd >"$TEGEN_SSH_HOME/sshd"
)
read -r sshd <"$TEGEN_SSH_HOME/sshd"
need ssh-keygen >/dev/null
(
  umask 077
  mkdir -p /run/sshd 2>/dev/null || true
  [ -e "$TEGEN_SSH_HOME/host_key" ] || ssh-keygen -q -t ed25519 -N '' -f "$TEGEN_SSH_HOME/host_key"
  cat >"$TEGEN_SSH_HOME/sshd_config" <<END
Port $TEGEN_SSH_PORT
HostKey $TEGEN_SSH_HOME/host_key
PidFile $TEGEN_SSH_HOME/sshd.pid
AuthorizedKeysFile $TEGEN_SSH_HOME/.ssh/authorized_keys
StrictModes no
UsePAM no
PermitUserEnvironment yes
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowTcpForwarding no
X11Forwarding no
MaxStartups 4096
ClientAliveInterval 30
LogLevel FATAL
END
)
options=
for option in UsePrivilegeSeparation=no PerSourcePenalties=no; do
  if "$sshd" -t -f "$TEGEN_SSH_HOME/sshd_config" -o "$option" >"$TEGEN_SSH_HOME/log" 2>&1 &&
    ! grep -q -i deprecated "$TEGEN_SSH_HOME/log"; then
    options="$options -o$option"
  fi
done
"$sshd" -D -e -f "$TEGEN_SSH_HOME/sshd_config" $options &
waits_for=$!
if [ "$#" -gt 0 ] && [ "$JOB_COMPLETION_INDEX" = 0 ]; then
  sh "$TEGEN_SSH_DIR/launcher.sh" "$@" &
  waits_for=$!
fi
stop() {
  read -r pid rest </proc/self/stat
  if [ "$pid" = 1 ]; then
    kill -s TERM -- -1
    while kill -s 0 -- -1; do sleep 1; done
  else
    kill "$waits_for"
  fi 2>/dev/null
  exit 143
}
trap stop TERM INT
wait "$waits_for"
`
	// discoverScript prints host:slots for each host whose sshd answers, which a name in DNS does not say yet.
	// ssh-keyscan asks all at once and is part of what ssh needs anyway. Hosts are asked twice, so that one lost packet
	// takes nobody out of training. Without any answer it fails, and horovodrun keeps the hosts it knew: from no line
	// it would read a host without a name (horovod/runner/elastic/discovery.py).
	discoverScript = `#!/bin/sh
set -eu
for round in 1 2; do
  sed 's/[ :].*//' "$TEGEN_HOSTFILE" | ssh-keyscan -T 5 -p "$TEGEN_SSH_PORT" -t ed25519 -f - 2>/dev/null || true
done | sed -n "s/^\[\(.*\)\]:$TEGEN_SSH_PORT .*/\1:$TEGEN_SLOTS/p" | sort -u | grep .
`
	// launcherScript waits until as many hosts answer as training needs, says so, since what it said last is that some
	// do not, then becomes the launcher.
	launcherScript = `set -eu
. "$TEGEN_SSH_DIR/ssh.sh"
trap 'exit 143' TERM INT
date +%s >"$TEGEN_SSH_HOME/time"
read -r started <"$TEGEN_SSH_HOME/time"
waited=0
said=
while :; do
  sh "$TEGEN_SSH_DIR/discover.sh" >"$TEGEN_SSH_HOME/answers" || true
  answers=0
  while read -r host; do answers=$((answers + 1)); done <"$TEGEN_SSH_HOME/answers"
  [ "$answers" -lt "$TEGEN_QUORUM" ] || break
  if [ "$waited" -ge "$TEGEN_START_SECONDS" ]; then
    echo "gave up after $waited seconds: $answers of $TEGEN_QUORUM hosts answer on port $TEGEN_SSH_PORT, and not" >&2
    sed 's/[ :].*//' "$TEGEN_HOSTFILE" | while read -r host; do
      grep -q -x -F "$host:$TEGEN_SLOTS" "$TEGEN_SSH_HOME/answers" || echo "  $host" >&2
    done
    exit 1
  fi
  [ "$said" = "$answers" ] || echo "$answers of $TEGEN_QUORUM hosts answer after $waited seconds"
  said=$answers
  sleep 2
  date +%s >"$TEGEN_SSH_HOME/time"
  read -r now <"$TEGEN_SSH_HOME/time"
  waited=$((now - started))
done
echo "$answers hosts answer after $waited seconds"
exec "$@"
`
	// keygenScript makes the pair once: what the Secret holds already is left alone.
	keygenScript = `set -eu
umask 077
cd "$TEGEN_SSH_HOME"
if [ -s "$TEGEN_SSH_KEYS/ssh-privatekey" ]; then
  echo "present already"
  echo '{}' >patch.json
  exit 0
fi
rm -f key key.pub
ssh-keygen -q -t ed25519 -N '' -C "$TEGEN_SSH_COMMENT" -f key
{
  printf '{"data":{"ssh-privatekey":"'
  base64 <key | tr -d '\n'
  printf '","ssh-publickey":"'
  base64 <key.pub | tr -d '\n'
  printf '"}}\n'
} >patch.json
rm -f key key.pub
`
)
