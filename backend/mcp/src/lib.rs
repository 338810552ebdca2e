//! A server of the Model Context Protocol over standard input and output: an assistant reads what a Watchglass server
//! knows, and changes nothing.
//!
//! The messages are JSON-RPC, one a line. Requests are answered one after the other, in their order. A tool is a GET
//! request of the HTTP API, so that it has the rights of the key. Revision 2026-07-28 and the four before it are
//! served: <https://modelcontextprotocol.io/specification>.

mod fit;
mod message;
mod tools;

use std::io::{self, BufRead, Read, Write};

/// Maximum length of a line, bytes: a request has a few names and times.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The HTTP API of a server.
pub trait Server {
    /// Status and body of the response to a GET request; `path` has no slash in front.
    ///
    /// # Errors
    /// The reason why there is no response, a sentence without a full stop.
    fn get(&self, path: &str) -> Result<(u16, Vec<u8>), String>;
}

/// Answers the requests of `input` until it ends; `version` is that of the program.
///
/// # Errors
/// The input cannot be read, or the output cannot be written.
pub fn serve(input: &mut impl BufRead, output: &mut impl Write, version: &str, server: &dyn Server) -> io::Result<()> {
    let mut line = Vec::new();
    while let Some(is_whole) = read_line(input, &mut line)? {
        let answer = match is_whole {
            true => message::answer(&line, version, server),
            false => Some(message::too_long()),
        };
        if let Some(answer) = answer {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// Reads a line; false if it was too long, and so was skipped. None at the end.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() <= MAX_LINE_BYTES || line.ends_with(b"\n") {
        return Ok(Some(true));
    }
    input.skip_until(b'\n')?;
    Ok(Some(false))
}

#[cfg(test)]
mod tests;
