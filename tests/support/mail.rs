//! A mail server on loopback that accepts and keeps all messages.

use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A received message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Addresses of its recipients.
    pub to: Vec<String>,
    /// Headers and body.
    pub text: String,
}

/// A mail server without TLS.
pub struct Mail {
    /// Address on which it listens.
    pub addr: SocketAddr,
    came: Arc<Mutex<Vec<Message>>>,
}

impl Mail {
    /// Starts a mail server.
    ///
    /// # Panics
    /// Panics without a free port on loopback.
    pub fn start() -> Mail {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (addr, came) = (listener.local_addr().expect("its address"), Arc::<Mutex<Vec<Message>>>::default());
        let kept = came.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                std::thread::spawn(move || talk(&stream, &kept));
            }
        });
        Mail { addr, came }
    }

    /// Messages so far, in order of arrival.
    pub fn came(&self) -> Vec<Message> {
        self.came.lock().clone()
    }
}

fn talk(stream: &TcpStream, kept: &Mutex<Vec<Message>>) {
    let mut out = stream;
    let mut say = |words: &str| out.write_all(format!("{words}\r\n").as_bytes()).is_ok();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut message = Message::default();
    say("220 here");
    while let Some(line) = lines.next() {
        let goes_on = match line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase().as_str() {
            "RCPT" => {
                message.to.extend(line.split(['<', '>']).nth(1).map(String::from));
                say("250 ok")
            }
            "DATA" => {
                say("354 go on");
                message.text = lines.by_ref().take_while(|line| line != ".").map(|line| line + "\n").collect();
                kept.lock().push(std::mem::take(&mut message));
                say("250 taken")
            }
            "QUIT" => {
                say("221 bye");
                return;
            }
            _ => say("250 ok"),
        };
        if !goes_on {
            return;
        }
    }
}
