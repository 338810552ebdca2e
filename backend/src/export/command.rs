//! `watchglass export`: writes the content of a data folder to standard output or a file.

use super::{Ask, Format, Pieces, Refused, select};
use crate::config::Export;
use history::Folder;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use stream::store::{Limits, Store};
use system::file::{Whole, is_stdout};

/// The error of an incomplete export.
#[derive(Debug)]
pub enum Failed {
    /// Invalid arguments; the sentence gives the remedy.
    Wrong(String),
    /// The data folder cannot be read.
    Folder(String),
    /// The text cannot be written.
    Output(String),
}

impl Failed {
    /// The exit status that goes with it.
    pub fn status(&self) -> u8 {
        match self {
            Failed::Output(_) => 1,
            Failed::Wrong(_) => 2,
            Failed::Folder(_) => 4,
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failed::Wrong(text) | Failed::Folder(text) | Failed::Output(text)) = self;
        f.write_str(text)
    }
}

/// Writes the dashboards for Grafana into a folder, which is made if it does not exist.
///
/// # Errors
/// [`Failed`]: a file cannot be written.
pub fn write_dashboards(folder: &Path) -> Result<(), Failed> {
    let failed = |error: io::Error| Failed::Output(format!("cannot write into {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (name, text) in rules::prometheus::dashboards(&collectors::catalog()) {
        std::fs::write(folder.join(name), text).map_err(failed)?;
    }
    Ok(())
}

/// Writes the export; `now` is in milliseconds since the Unix epoch. The notes list unreadable parts of the folder,
/// which are left out.
///
/// # Errors
/// [`Failed`]; the output file is then not created.
pub fn run(folder: &Path, wanted: &Export, now: i64) -> Result<Vec<String>, Failed> {
    let format = Format::from_name(wanted.format.as_deref().unwrap_or_default())
        .map_err(|why| Failed::Wrong(format!("--format {why}")))?;
    let shown = folder.display();
    if !folder.is_dir() {
        return Err(Failed::Folder(format!(
            "there is no data folder {shown}; name that of the server with --data-dir"
        )));
    }
    let found = Folder::read_only(folder)
        .map_err(|error| Failed::Folder(format!("the data folder {shown} cannot be read: {error}")))?;
    let limits = Limits { retention: i64::MAX / 4, bytes: usize::MAX };
    let (store, _) = Store::of_found(Arc::new(collectors::catalog()), &found, limits, None);
    let ask = Ask {
        tags: wanted.tags.clone(),
        sources: wanted.sources.clone(),
        from: wanted.from.map_or(i64::MIN / 4, |from| from.begin(now)),
        to: wanted.to.end(now),
        step: wanted.step,
        rate: wanted.rate,
        ..Ask::default()
    };
    let refused = |refused: Refused| Failed::Wrong(refused.to_string());
    let mut selection = select(&store, ask).map_err(refused)?;
    let nothing = selection.wanted.is_empty();
    let form = format.form(&mut selection).map_err(refused)?;
    let pieces = Pieces::new(selection, form);
    match wanted.output.as_deref().filter(|path| !is_stdout(path)) {
        Some(path) => {
            let cannot = |error: io::Error| Failed::Output(format!("{} cannot be written: {error}", path.display()));
            let mut file = Whole::create(path).map_err(cannot)?;
            write(pieces, &mut file).and_then(|()| file.finish()).map_err(cannot)?;
        }
        None => match write(pieces, &mut io::stdout().lock()) {
            // The reader has closed the pipe, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(|error| Failed::Output(format!("the output cannot be written: {error}")))?,
        },
    }
    let mut notes: Vec<String> = found.report.damages.iter().map(|damage| format!("skipped: {damage}")).collect();
    let columns = store.damages().count();
    if found.sources.is_empty() {
        notes.push(format!("there is no history in {shown}; name the folder of the server with --data-dir"));
    } else if nothing {
        notes.push("no stored sample matches; --tag '*' without --from and --to exports everything".into());
    }
    if columns > 0 {
        notes.push(format!("skipped: {columns} damaged columns"));
    }
    Ok(notes)
}

fn write(pieces: Pieces, out: &mut impl Write) -> io::Result<()> {
    for piece in pieces {
        out.write_all(piece.as_bytes())?;
    }
    out.flush()
}
