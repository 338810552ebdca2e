//! A receiver of e-mail on loopback that takes everything, and keeps it.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// A message as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The addresses that it was for.
    pub to: Vec<String>,
    /// Its headers and its body.
    pub text: String,
}

/// A server of e-mail without TLS.
pub struct Mail {
    /// Where it listens.
    pub addr: SocketAddr,
    came: Arc<Mutex<Vec<Message>>>,
}

impl Mail {
    /// Starts one.
    ///
    /// # Panics
    /// Panics where nobody can listen on loopback.
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

    /// What came so far, in its order.
    pub fn came(&self) -> Vec<Message> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut message));
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
