//! One running program: how it is started, seen to exit, killed with everything it started, and reaped.

use std::process::ExitStatus;
#[cfg(unix)]
use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use tokio::process::{Child, Command};

/// A running program.
///
/// On Unix it leads a process group of its own, and killing it kills the group: everything that it started and
/// that did not leave the group on purpose (`setsid`). Elsewhere only the program itself is killed; what it has
/// started is its own business there. Dropping a program kills it too.
pub(super) struct Program {
    child: Child,
    group: Group,
}

impl Program {
    /// Starts a program.
    pub(super) fn start(mut command: Command) -> std::io::Result<Self> {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let group = Group::of(&mut child);
        Ok(Self { child, group })
    }

    /// Its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns when the program has exited; what it has started may still be there. May be dropped and called
    /// again.
    pub(super) async fn exited(&mut self) {
        self.group.exited(&mut self.child).await;
    }

    /// Kills the program, and on Unix its whole group, and takes its status.
    pub(super) async fn kill_and_reap(&mut self) -> Option<ExitStatus> {
        self.group.kill(&mut self.child);
        let status = self.child.wait().await.ok();
        self.group.forget();
        status
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.group.kill(&mut self.child);
        self.group.forget();
    }
}

/// The leaders of the groups that run now.
#[cfg(unix)]
static RUNNING: Mutex<BTreeSet<rustix::process::RawPid>> = Mutex::new(BTreeSet::new());

/// Kills every program that runs: for a process that is about to end at a signal, where nothing is dropped.
pub(super) fn kill_all() {
    #[cfg(unix)]
    for leader in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        if let Some(leader) = rustix::process::Pid::from_raw(*leader) {
            // The only failure is that there is nothing left to kill.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

/// The process group of a program. Its number stays taken as long as the program is not reaped, so it is
/// killed before that and never after: then nobody else's processes can have the number.
#[cfg(unix)]
struct Group {
    leader: Option<rustix::process::Pid>,
    exit: Option<tokio::task::JoinHandle<()>>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &mut Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = id.and_then(rustix::process::Pid::from_raw);
        if let Some(leader) = leader {
            RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(leader.as_raw_pid());
        }
        let exit = leader.map(|leader| tokio::task::spawn_blocking(move || wait_without_reaping(leader)));
        Self { leader, exit }
    }

    async fn exited(&mut self, _child: &mut Child) {
        if let Some(exit) = &mut self.exit {
            // Waiting cannot panic; should its thread be gone, looking at the status is what is left.
            let _ = exit.await;
            self.exit = None;
        }
    }

    fn kill(&mut self, _child: &mut Child) {
        if let Some(leader) = self.leader {
            // The only failure is that there is nothing left to kill.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }

    fn forget(&mut self) {
        if let Some(leader) = self.leader.take() {
            RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&leader.as_raw_pid());
        }
    }
}

/// Blocks until a child has exited, and leaves its status for whoever reaps it.
#[cfg(unix)]
fn wait_without_reaping(child: rustix::process::Pid) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(child), options), Err(rustix::io::Errno::INTR)) {}
}

/// Where there are no process groups, the program stands for itself.
#[cfg(not(unix))]
struct Group;

#[cfg(not(unix))]
impl Group {
    fn of(_child: &mut Child) -> Self {
        Self
    }

    async fn exited(&mut self, child: &mut Child) {
        let _ = child.wait().await;
    }

    fn kill(&mut self, child: &mut Child) {
        let _ = child.start_kill();
    }

    fn forget(&mut self) {}
}
