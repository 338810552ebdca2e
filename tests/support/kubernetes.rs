//! A Kubernetes API server over TLS that answers as a test wants, and the service account of a pod that sends requests
//! to it.

use crate::certificate::Authority;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Treatment of a request.
#[derive(Clone, Debug)]
pub enum ApiAnswer {
    /// Answers 200 with this text.
    Text(String),
    /// Answers with this status and a JSON text, as the real one does.
    Status(u16),
    /// Reads the request and never answers.
    Hang,
    /// Begins a list and sends 100 MB of it, without `Content-Length`.
    Flood,
}

/// A server on a free port. Its threads end with the test program.
pub struct ApiServer {
    /// Address on which it listens.
    pub addr: SocketAddr,
    account: tempfile::TempDir,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    /// Starts a server. `answer` gets the request line, such as `GET /api/v1/pods?limit=1 HTTP/1.1`.
    pub fn start(answer: impl Fn(&str) -> ApiAnswer + Send + Sync + 'static) -> Self {
        let (account, authority) = (tempfile::tempdir().expect("a folder"), Authority::new());
        let files = tempfile::tempdir().expect("a folder");
        let (chain, key) = authority.sign("127.0.0.1", files.path());
        let chain: Vec<_> =
            CertificateDer::pem_file_iter(chain).expect("a file").map(|one| one.expect("one")).collect();
        let key = PrivateKeyDer::from_pem_file(key).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("it fits");
        let written = authority.write(files.path());
        std::fs::copy(written, account.path().join("ca.crt")).expect("copied");
        std::fs::write(account.path().join("namespace"), "training").expect("written");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (config, theirs, answer) = (Arc::new(config), asked.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let (config, asked, answer) = (config.clone(), theirs.clone(), answer.clone());
                // The client notices a broken connection.
                std::thread::spawn(move || serve(tcp, config, &asked, &*answer));
            }
        });
        let server = ApiServer { addr, account, asked };
        server.set_token("first-canary");
        server
    }

    /// Sets the token of the account from now on.
    pub fn set_token(&self, token: &str) {
        std::fs::write(self.account().join("token"), token).expect("written");
    }

    /// The folder of the account.
    pub fn account(&self) -> &Path {
        self.account.path()
    }

    /// The heads of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    /// Variables that the kubelet sets in a pod.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        [
            ("KUBERNETES_SERVICE_HOST", self.addr.ip().to_string()),
            ("KUBERNETES_SERVICE_PORT", self.addr.port().to_string()),
        ]
    }
}

fn serve(
    tcp: TcpStream,
    config: Arc<ServerConfig>,
    asked: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str) -> ApiAnswer,
) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, tcp));
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let answer = answer(head.lines().next().unwrap_or_default());
        asked.lock().push(head);
        let to = stream.get_mut();
        match answer {
            ApiAnswer::Text(text) => write!(
                to,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            )?,
            ApiAnswer::Status(status) => {
                let text = "{\"kind\":\"Status\",\"status\":\"Failure\"}";
                write!(to, "HTTP/1.1 {status} No\r\ncontent-length: {}\r\n\r\n{text}", text.len())?;
            }
            ApiAnswer::Hang => std::thread::sleep(Duration::from_secs(3600)),
            ApiAnswer::Flood => {
                to.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"items\":[")?;
                let blank = vec![b' '; 1 << 20];
                return (0..100).try_for_each(|_| to.write_all(&blank));
            }
        }
        to.flush()?;
    }
}
