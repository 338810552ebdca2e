//! A real JupyterLab with our package and our extension, in folders of its own.

use crate::server::{binary, command, free_port};
use crate::waiting::{MAX_WAIT, until_or};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// Base path of all Jupyter URLs, as under JupyterHub.
pub const BASE: &str = "/user/ada/";

/// A home folder with the package in it. Several Jupyters may share it.
pub struct Home {
    folder: TempDir,
}

/// A running Jupyter. It is killed by SIGKILL when this is dropped.
pub struct Jupyter {
    child: Child,
    port: u16,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Makes a new home. The package is installed there as by pip, with our debug binary.
    ///
    /// # Panics
    /// Panics when the folder cannot be made.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        for path in ["site/watchglass-0.dist-info", "bin", "work", "run"] {
            std::fs::create_dir_all(at(path)).expect("made");
        }
        symlink(root().join("notebook/python/watchglass"), at("site/watchglass")).expect("linked");
        symlink(binary(), at("bin/watchglass")).expect("linked");
        let write = |path: &str, text: &str| std::fs::write(at(path), text).expect("written");
        let metadata = "Metadata-Version: 2.1\nName: watchglass\nVersion: 0\n";
        write("site/watchglass-0.dist-info/METADATA", metadata);
        let project = std::fs::read_to_string(root().join("pyproject.toml")).expect("the project");
        let (group, rest) =
            project.split_once("[project.entry-points.").expect("entry points").1.split_once(']').expect("its end");
        let entry = rest.trim_start().lines().next().expect("an entry").replace('"', "");
        write("site/watchglass-0.dist-info/entry_points.txt", &format!("[{group}]\n{entry}\n"));
        Home { folder }
    }

    /// The path of a file or folder in it.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a notebook with these cells. Its name is its path below the folder of notebooks.
    ///
    /// # Panics
    /// Panics when it cannot be written.
    pub fn notebook(&self, name: &str, cells: &[&str]) {
        let cell = |source: &&str| serde_json::json!({ "cell_type": "code", "execution_count": null, "id": format!("c{}", source.len()), "metadata": {}, "outputs": [], "source": source });
        let kernel = serde_json::json!({ "kernelspec": { "display_name": "Python 3", "language": "python", "name": "python3" } });
        let cells: Vec<_> = cells.iter().map(cell).collect();
        let book = serde_json::json!({ "cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5 });
        std::fs::write(self.at("work").join(name), book.to_string()).expect("written");
    }

    /// Starts a Jupyter and waits until it answers.
    ///
    /// # Panics
    /// Panics when it does not start in time, or `WATCHGLASS_JUPYTER` is not set to the folder of its environment.
    pub fn jupyter(&self) -> Jupyter {
        self.jupyter_with(&[])
    }

    /// Starts a Jupyter with more settings.
    ///
    /// # Panics
    /// Panics as [`jupyter`](Self::jupyter) does.
    pub fn jupyter_with(&self, settings: &[String]) -> Jupyter {
        let environment = PathBuf::from(std::env::var_os("WATCHGLASS_JUPYTER").expect("the environment of JupyterLab"));
        let port = free_port();
        let at = |path: &str| self.at(path).into_os_string();
        let path = std::env::join_paths(
            [self.at("bin"), environment.join("bin")]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let log = std::fs::File::options().append(true).create(true).open(self.at("jupyter.log")).expect("a log");
        #[allow(clippy::disallowed_methods, reason = "the test starts Jupyter itself")]
        let child = command(environment.join("bin").join("jupyter"))
            .args(["lab", "--no-browser", "--allow-root", "--expose-app-in-browser", "--ServerApp.port_retries=0"])
            .arg(format!("--ServerApp.port={port}"))
            .arg(format!("--ServerApp.base_url={BASE}"))
            .args(["--IdentityProvider.token=t", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"])
            .args(["--LabApp.news_url=None", "--ServerApp.terminals_enabled=False"])
            .arg(format!("--ServerApp.root_dir={}", self.at("work").display()))
            .args(settings)
            .env("PATH", path.expect("a path"))
            .env("PYTHONPATH", at("site"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("JUPYTER_PATH", root().join("notebook/data/data/share/jupyter"))
            .env("HOME", self.folder.path())
            .env("JUPYTER_CONFIG_DIR", at("config"))
            .env("JUPYTER_DATA_DIR", at("data"))
            .env("JUPYTER_RUNTIME_DIR", at("runtime"))
            .env("IPYTHONDIR", at("ipython"))
            .env("XDG_STATE_HOME", at("state"))
            .env("XDG_RUNTIME_DIR", at("run"))
            .env_remove("WATCHGLASS_LOG")
            .env_remove("JUPYTERHUB_SERVICE_PREFIX")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log)
            .spawn()
            .expect("JupyterLab starts");
        let jupyter = Jupyter { child, port };
        // Python compiles its modules at the first start.
        until_or(4 * MAX_WAIT, || std::net::TcpStream::connect(("127.0.0.1", port)).ok(), || self.log());
        jupyter
    }

    /// Log of all Jupyters of this home.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.at("jupyter.log")).unwrap_or_default()
    }

    /// Command lines of our programs that run for it, by process id.
    pub fn programs(&self) -> Vec<(u32, String)> {
        let own = format!("XDG_RUNTIME_DIR={}", self.at("run").display());
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let one = |entry: std::fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let line = String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).ok()?).replace('\0', " ");
            let is_ours = environment.split(|b| *b == 0).any(|one| one == own.as_bytes());
            (is_ours && line.contains("watchglass serve")).then_some((pid, line))
        };
        processes.filter_map(one).collect()
    }
}

impl Jupyter {
    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Address on which it listens.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The address of a path below its base.
    pub fn url(&self, path: &str) -> String {
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("http://127.0.0.1:{}{BASE}{path}{sign}token=t", self.port)
    }

    /// Ends it in order, as JupyterHub does.
    ///
    /// # Panics
    /// Panics when the signal cannot be sent.
    pub fn end(mut self) {
        let told = crate::programs::run("kill", &["-TERM", &self.child.id().to_string()], "");
        assert!(told.status.success(), "{told:?}");
        self.child.wait().expect("it ends");
    }

    /// Kills it, as the kernel does when memory is full: it cannot clean up.
    ///
    /// # Panics
    /// Panics when it cannot be killed.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Jupyter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
