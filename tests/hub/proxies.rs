//! Real proxies between an agent and its hub. They cut idle connections, but none of ours. A restart of a proxy loses
//! no sample.

use std::net::SocketAddr;
use std::path::Path;
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::certificate::Authority;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::programs::Program;
use watchglass_tests::road::{connecting, idle_until_cut, silent, upgrade};

/// Idle timeout of the proxies, seconds. Both ends of our connection send every five.
const IDLE: u32 = 10;

/// Starts a proxy with a configuration file, at an address that it may have had before.
fn start(folder: &Path, addr: SocketAddr, name: &str, settings: &str, args: &[&str]) -> Program {
    let file = folder.join("settings");
    std::fs::write(&file, settings).expect("written");
    let file = file.to_str().expect("plain");
    let args: Vec<&str> = args.iter().map(|arg| if arg.is_empty() { file } else { *arg }).collect();
    Program::start_in(folder, addr, name, &args)
}

/// An agent that samples so rarely that only its heartbeats keep the connection alive.
fn calm(fleet: &Fleet) -> Agent {
    let mut command = agent::command(&fleet.url, &fleet.key, &fleet.folder().join("calm"));
    command.args(["--interval", "60s", "--collectors", "cpu", "--name", "calm"]).args(&fleet.agent_args);
    command.envs(fleet.agent_env.iter().map(|(name, value)| (name, value)));
    Agent::start(command)
}

/// Sends a fleet's agents through a proxy, which cuts idle connections and is then restarted.
fn through(mut fleet: Fleet, start: impl Fn() -> Program, silence: impl FnOnce()) {
    let proxy = start();
    fleet.start_agent();
    let calm = calm(&fleet);
    fleet.grows("samples come through the proxy");
    calm.says("connected to");
    let links = fleet.cutter.accepted();
    silence();
    assert_eq!(fleet.cutter.accepted(), links, "no link of ours was cut; the calm one said:\n{}", calm.output());
    drop(proxy);
    fleet.samples_on(20);
    let _again = start();
    fleet.grows("samples come again through the proxy");
    let audit = fleet.settle();
    assert!(audit.sound() && audit.stored > 30, "{audit:?}");
}

#[test]
#[ignore = "needs Debian's nginx on PATH"]
fn with_nginx_a_link_outlives_its_silence_and_its_restart() {
    let mut fleet = Fleet::hub(&[]);
    let (folder, addr, hub) = (fleet.folder().join("nginx"), Program::free(), fleet.addr());
    std::fs::create_dir(&folder).expect("made");
    let (quiet, here) = (silent(), folder.display());
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = kinds.iter().map(|kind| format!("  {kind}_temp_path {here}/{kind};\n")).collect();
    let pass = |to: SocketAddr| {
        format!(
            "proxy_pass http://{to}; proxy_http_version 1.1; proxy_read_timeout {IDLE}s; \
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;"
        )
    };
    let settings = format!(
        "daemon off;\nmaster_process off;\npid {here}/pid;\nerror_log {here}/errors;\nevents {{}}\nhttp {{\n  access_log off;\n\
         {temporary}  server {{\n    listen {addr};\n    location / {{ {} }}\n    location = /silent {{ {} }}\n  }}\n}}\n",
        pass(hub),
        pass(quiet),
    );
    fleet.url = format!("http://{addr}");
    let errors = format!("{here}/errors");
    let start = || start(&folder, addr, "nginx", &settings, &["-c", "", "-e", &errors]);
    through(fleet, start, || idle_until_cut(addr, &upgrade("/silent")));
}

#[test]
#[ignore = "needs Debian's haproxy on PATH"]
fn with_haproxy_a_link_outlives_its_silence_and_its_restart() {
    let mut fleet = Fleet::hub(&[]);
    let (folder, addr, hub, quiet) = (fleet.folder().join("haproxy"), Program::free(), fleet.addr(), silent());
    std::fs::create_dir(&folder).expect("made");
    let settings = format!(
        "defaults\n  mode http\n  timeout connect 10s\n  timeout client {IDLE}s\n  timeout server {IDLE}s\n  \
         timeout tunnel {IDLE}s\nfrontend in\n  bind {addr}\n  use_backend quiet if {{ path /silent }}\n  \
         default_backend hub\nbackend hub\n  server hub {hub}\nbackend quiet\n  server quiet {quiet}\n"
    );
    fleet.url = format!("http://{addr}");
    let start = || start(&folder, addr, "haproxy", &settings, &["-db", "-f", ""]);
    through(fleet, start, || idle_until_cut(addr, &upgrade("/silent")));
}

#[test]
#[ignore = "needs Debian's caddy on PATH"]
fn with_caddy_a_link_goes_through_its_tls_and_outlives_its_restart() {
    let mut fleet = Fleet::hub(&[]);
    let (folder, addr, hub) = (fleet.folder().join("caddy"), Program::free(), fleet.addr());
    std::fs::create_dir(&folder).expect("made");
    let settings = format!(
        "{{\n  admin off\n  auto_https disable_redirects\n  skip_install_trust\n}}\nhttps://localhost:{port} {{\n  \
         bind 127.0.0.1\n  tls internal\n  reverse_proxy {hub}\n}}\n",
        port = addr.port(),
    );
    fleet.url = format!("https://localhost:{}", addr.port());
    let start = || start(&folder, addr, "caddy", &settings, &["run", "--adapter", "caddyfile", "--config", ""]);
    // It creates its certificate authority at its first start.
    drop(start());
    let authority = folder.join("caddy/pki/authorities/local/root.crt");
    fleet.until("Caddy has an authority", || authority.is_file().then_some(()));
    fleet.agent_args = vec!["--ca".into(), authority.display().to_string()];
    through(fleet, start, || {});
}

fn tinyproxy(folder: &Path, addr: SocketAddr, more: &str) -> Program {
    let settings = format!("Port {}\nListen 127.0.0.1\nTimeout {IDLE}\nAllow 127.0.0.1\n{more}", addr.port());
    start(folder, addr, "tinyproxy", &settings, &["-d", "-c", ""])
}

#[test]
#[ignore = "needs Debian's tinyproxy on PATH"]
fn with_tinyproxy_a_link_goes_out_through_it_and_outlives_its_restart() {
    let mut fleet = Fleet::hub(&[]);
    let (folder, addr, quiet) = (fleet.folder().join("tinyproxy"), Program::free(), silent());
    std::fs::create_dir(&folder).expect("made");
    fleet.agent_args = vec!["--proxy".into(), format!("http://{addr}")];
    let start = || tinyproxy(&folder, addr, "");
    through(fleet, start, || idle_until_cut(addr, &format!("CONNECT {quiet} HTTP/1.1\r\nHost: {quiet}")));
}

#[test]
#[ignore = "needs Debian's tinyproxy on PATH"]
fn with_tinyproxy_of_the_environment_a_link_with_tls_goes_out_through_it() {
    let files = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let (chain, key) = authority.sign("hub.example.test", files.path());
    let (chain, key) = (chain.display().to_string(), key.display().to_string());
    let mut fleet = Fleet::hub(&["--tls-cert", &chain, "--tls-key", &key, "--host", "hub.example.test"]);
    let addr = Program::free();
    // Only the proxy can reach the hub: it uses an upstream proxy that connects all requests to it.
    let upstream = connecting(fleet.addr());
    fleet.url = "https://hub.example.test".into();
    fleet.agent_args = vec!["--ca".into(), authority.write(files.path()).display().to_string()];
    fleet.agent_env = vec![("HTTPS_PROXY".into(), format!("http://{addr}")), ("NO_PROXY".into(), "example.org".into())];
    let start = || tinyproxy(files.path(), addr, &format!("Upstream http {upstream} \".example.test\"\n"));
    through(fleet, start, || {});
}
