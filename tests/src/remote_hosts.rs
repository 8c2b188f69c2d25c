//! Other machines for tests, all of them this one: an ssh server and a Slurm cluster of one node, with configurations, keys, ports and
//! directories of their own, that end with the value that stands for them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::cli::Directory;
use crate::patience::wait_for;

/// Servers that are killed when it's dropped.
#[derive(Debug, Default)]
struct Servers(Vec<Child>);

impl Servers {
    fn start(&mut self, command: &mut Command, log: &Path) {
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it"));
        self.0.push(child);
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in self.0.iter_mut().rev() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn private(directory: &Directory, name: &str) {
    let path = directory.file(name);
    fs::create_dir_all(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
}

#[track_caller]
fn wait_until(what: &str, log: &Path, mut ready: impl FnMut() -> bool) {
    let said = || fs::read_to_string(log).unwrap_or_default();
    wait_for(
        || format!("{what} does not begin:\n{}", said()),
        || ready().then_some(()),
    );
}

/// An ssh server on this machine.
#[derive(Debug)]
pub struct SshServer {
    directory: Directory,
    port: u16,
    _servers: Servers,
}

impl SshServer {
    /// Starts one whose users have these variables.
    ///
    /// # Panics
    /// When it doesn't begin.
    pub fn start(variables: &[(&str, &str)]) -> SshServer {
        let directory = Directory::new();
        private(&directory, "keys");
        private(&directory, "tmp");
        for key in ["host", "user", "other"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(directory.file(&format!("keys/{key}")))
                .status()
                .expect("ssh-keygen runs");
            assert!(made.success());
        }
        let port = free_port();
        let tmp = directory.file("tmp");
        let set: Vec<String> = std::iter::once(("TMPDIR", tmp.to_str().unwrap()))
            .chain(variables.iter().copied())
            .map(|(name, value)| format!("\"{name}={value}\""))
            .collect();
        let place = directory.path().display();
        directory.write(
            "sshd_config",
            format!(
                r#"Port {port}
ListenAddress 127.0.0.1
HostKey {place}/keys/host
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {place}/keys/user.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
SetEnv {}
"#,
                set.join(" ")
            )
            .as_bytes(),
        );
        let host = directory.read("keys/host.pub");
        directory.write("known_hosts", format!("[127.0.0.1]:{port} {host}").as_bytes());
        // Where the server confines what it does not trust.
        let _ = fs::create_dir_all("/run/sshd");
        let log = directory.file("log");
        let mut servers = Servers::default();
        // It wants to be called by its full path.
        servers.start(
            Command::new("/usr/sbin/sshd")
                .args(["-D", "-e", "-f"])
                .arg(directory.file("sshd_config")),
            &log,
        );
        wait_until("sshd", &log, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        SshServer {
            directory,
            port,
            _servers: servers,
        }
    }

    /// The runner that leads there.
    pub fn runner(&self) -> String {
        self.runner_with("user", "known_hosts")
    }

    /// The same with a key that it doesn't know.
    pub fn runner_with_wrong_key(&self) -> String {
        self.runner_with("other", "known_hosts")
    }

    /// The same where its own key isn't known.
    pub fn runner_to_stranger(&self) -> String {
        self.runner_with("user", "nobody")
    }

    fn runner_with(&self, key: &str, known: &str) -> String {
        let place = self.directory.path().display();
        format!(
            "ssh -F none -p {} -i {place}/keys/{key} -o IdentitiesOnly=yes -o UserKnownHostsFile={place}/{known} \
             -o GlobalKnownHostsFile=none -o StrictHostKeyChecking=yes 127.0.0.1",
            self.port
        )
    }

    /// Where its users leave files.
    pub fn tmp(&self) -> std::path::PathBuf {
        self.directory.file("tmp")
    }
}

/// A Slurm cluster of this machine alone.
#[derive(Debug)]
pub struct SlurmCluster {
    directory: Directory,
    _servers: Servers,
}

impl SlurmCluster {
    /// Starts one.
    ///
    /// # Panics
    /// When it doesn't begin.
    pub fn start() -> SlurmCluster {
        let directory = Directory::new();
        for name in ["munge", "state", "spool", "tmp"] {
            private(&directory, name);
        }
        let place = directory.path().display().to_string();
        directory.write("munge/key", &[7; 1024]);
        fs::set_permissions(directory.file("munge/key"), fs::Permissions::from_mode(0o600)).unwrap();
        // munged distrusts directories that others may write, such as those above.
        let mut servers = Servers::default();
        let log = directory.file("log");
        let socket = format!("{place}/munge/socket");
        servers.start(
            Command::new("/usr/sbin/munged").args([
                "--foreground",
                "--force",
                &format!("--socket={socket}"),
                &format!("--key-file={place}/munge/key"),
                &format!("--pid-file={place}/munge/pid"),
                &format!("--log-file={place}/munge/log"),
                &format!("--seed-file={place}/munge/seed"),
            ]),
            &log,
        );
        wait_until("munged", &log, || Path::new(&socket).exists());
        let (controller, daemon) = (free_port(), free_port());
        directory.write(
            "slurm.conf",
            format!(
                r#"ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={socket}
SlurmUser=root
SlurmdUser=root
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/linear
SchedulerType=sched/builtin
ReturnToService=2
KillWait=5
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES MaxTime=INFINITE OverSubscribe=FORCE:4 State=UP
"#
            )
            .as_bytes(),
        );
        let conf = directory.file("slurm.conf");
        servers.start(
            Command::new("/usr/sbin/slurmctld").args(["-D", "-c", "-f"]).arg(&conf),
            &log,
        );
        servers.start(
            Command::new("/usr/sbin/slurmd")
                .args(["-D", "-N", "localhost", "-f"])
                .arg(&conf),
            &log,
        );
        let cluster = SlurmCluster {
            directory,
            _servers: servers,
        };
        wait_until("Slurm", &log, || {
            let info = Command::new("sinfo")
                .args(["-h", "-o", "%t"])
                .envs(cluster.variables())
                .output();
            info.is_ok_and(|info| String::from_utf8_lossy(&info.stdout).trim() == "idle")
        });
        cluster
    }

    /// What its commands have to have in their environment.
    pub fn variables(&self) -> Vec<(String, String)> {
        let conf = self.directory.file("slurm.conf").display().to_string();
        vec![("SLURM_CONF".to_owned(), conf)]
    }

    /// The runner that leads there.
    pub fn runner(&self) -> String {
        format!("srun --quiet --export=ALL,TMPDIR={}", self.tmp().display())
    }

    /// Where its jobs leave files.
    pub fn tmp(&self) -> std::path::PathBuf {
        self.directory.file("tmp")
    }
}
