//! The real agent connected to a hub, on this machine.

use std::process::{Child, Command, Stdio};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::watchglass;

/// An agent that joined a hub. It is killed when this is dropped.
pub struct Machine(Child);

impl Machine {
    /// Starts an agent that stores nothing on disk, and joins a hub under this name.
    pub fn start<'a>(hub: &Hub, name: &str, args: impl IntoIterator<Item = &'a str>) -> Machine {
        let mut command = Self::command(hub, name, args);
        command.arg("--memory");
        Self::run(command)
    }

    /// The command of such an agent.
    pub fn command<'a>(hub: &Hub, name: &str, args: impl IntoIterator<Item = &'a str>) -> Command {
        let url = format!("http://{}", hub.server.addr());
        let mut command = watchglass(["agent", "--hub", &url, "--key", &hub.keys["join"], "--name", name]);
        command.args(args);
        command
    }

    /// Starts a command.
    pub fn run(mut command: Command) -> Machine {
        Machine(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
