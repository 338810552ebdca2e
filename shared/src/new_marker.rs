//! Markers in the body of `POST /api/v1/markers`, and their conversion to stored [`Marker`]s.

use crate::answer::markers::{CellPhase, Marker, MarkerBy};
use crate::date;
use crate::run::check_id;
use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Maximum number of markers of one request.
pub const MAX_NEW_MARKERS: usize = 256;
/// The kinds of markers. Only `cell` requires a notebook kernel.
pub const KINDS: [&str; 7] = ["epoch", "step", "checkpoint", "eval", "cell", "preempting", "note"];
/// Maximum length of texts and names, bytes.
const MAX_TEXT_BYTES: usize = 256;
const MAX_NAME_BYTES: usize = 64;
/// Maximum time of a marker ahead of our clock, milliseconds.
const MAX_AHEAD_MS: i64 = 60_000;

/// `POST /api/v1/markers`: one marker, or `{"markers": [...]}`.
#[derive(Clone, Debug, Default)]
pub struct NewMarkers(pub Vec<NewMarker>);

/// A marker as it is sent.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMarker {
    /// One of [`KINDS`]. Absent: `note`.
    pub kind: Option<String>,
    /// Jupyter's ID of the kernel.
    pub kernel: Option<String>,
    /// PID of the sender, in place of `kernel`. A kernel is found by its own PID and by those of its descendants.
    pub pid: Option<u32>,
    /// Rises with each marker of a kernel; the same number and time again is the same marker.
    pub seq: Option<u64>,
    /// Time of the marker: Unix seconds or RFC 3339. Absent: now.
    pub t: Option<MarkerTime>,
    /// End of the marker, in the same forms as `t`.
    pub end: Option<MarkerTime>,
    /// ID of its training job.
    pub run: Option<String>,
    /// Rank of the sender in that job. It follows from the sending process and is never read from a request.
    #[serde(skip)]
    pub rank: Option<u32>,
    /// Phase of a cell.
    pub phase: Option<CellPhase>,
    /// Sender of a cell's marker; absent for its kernel itself.
    pub by: Option<MarkerBy>,
    /// The cell's id in the notebook.
    pub cell: Option<String>,
    /// Execution count of the cell.
    pub n: Option<u64>,
    /// Whether a cell ended without an error.
    pub ok: Option<bool>,
    /// The name of the error.
    pub error: Option<String>,
    /// A line of the cell, if its user wants it kept.
    pub label: Option<String>,
    /// Text of the marker.
    pub text: Option<String>,
    /// A number of steps.
    pub step: Option<u64>,
    /// ID given by the sender; the same ID again is the same marker.
    pub id: Option<String>,
}

/// The process of a marker's `pid`, as the system describes it: a kernel, or any other program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkerSender {
    /// Jupyter's ID of the kernel, if the process is one or belongs to one. Then the other fields are absent.
    pub kernel: Option<String>,
    /// Its PID.
    pub pid: Option<u32>,
    /// Name of its program, `/proc/PID/comm`.
    pub program: Option<String>,
    /// Name of its user.
    pub user: Option<String>,
    /// The person or key whose request to a hub it is. Then it is no process of the machine.
    pub sent_by: Option<String>,
}

/// A time as it is sent.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MarkerTime {
    /// Unix seconds.
    Seconds(f64),
    /// RFC 3339.
    Text(String),
}

impl MarkerTime {
    fn ms(&self) -> Option<i64> {
        match self {
            MarkerTime::Seconds(seconds) => date::from_seconds(*seconds),
            MarkerTime::Text(text) => date::from_text(text),
        }
    }
}

/// Field of a body with a list of markers.
const LIST: &str = "markers";

impl<'de> Deserialize<'de> for NewMarkers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NewMarkersVisitor)
    }
}

/// Parses both forms in one pass: the first field name decides which one it is. So an error has the path of its field.
struct NewMarkersVisitor;

impl<'de> Visitor<'de> for NewMarkersVisitor {
    type Value = NewMarkers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a marker, or {\"markers\": [...]}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<NewMarkers, M::Error> {
        let first: Option<String> = fields.next_key()?;
        if first.as_deref() != Some(LIST) {
            let one = NewMarker::deserialize(MapAccessDeserializer::new(Resumed { first, fields }))?;
            return Ok(NewMarkers(vec![one]));
        }
        let list = fields.next_value()?;
        match fields.next_key::<String>()? {
            None => Ok(NewMarkers(list)),
            Some(other) => Err(M::Error::unknown_field(&other, &[LIST])),
        }
    }
}

/// Deserializes an object whose first field name was already read.
struct Resumed<M> {
    first: Option<String>,
    fields: M,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Resumed<M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        match self.first.take() {
            Some(first) => {
                let name: StringDeserializer<M::Error> = first.into_deserializer();
                seed.deserialize(name).map(Some)
            }
            None => self.fields.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.fields.next_value_seed(seed)
    }
}

/// Reason why a marker is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadMarker {
    /// Unknown kind.
    Kind,
    /// The kernel's ID is no UUID.
    Kernel,
    /// The run's ID is invalid.
    Run,
    /// A time is invalid, or is ahead of ours.
    Time,
    /// It ends before it begins.
    End,
    /// A text is too long: its name and the maximum number of bytes.
    Long(&'static str, usize),
    /// A cell without kernel and phase, or a phase without a cell.
    Cell,
    /// The marker is empty.
    Empty,
}

impl fmt::Display for BadMarker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadMarker::Kind => write!(f, "kind is one of {}", KINDS.join(", ")),
            BadMarker::Kernel => f.write_str("kernel is the ID that Jupyter gives it, a UUID"),
            BadMarker::Run => f.write_str("run is the ID of a run; `watchglass runs` lists them"),
            BadMarker::Time => f.write_str("t and end are Unix seconds or RFC 3339, and not in the future"),
            BadMarker::End => f.write_str("end is before t"),
            BadMarker::Long(name, most) => write!(f, "{name} has more than {most} bytes"),
            BadMarker::Cell => f.write_str("only markers of the kind cell have phase start or end, and kernel or pid"),
            BadMarker::Empty => f.write_str("the marker has no text; give one with text"),
        }
    }
}

/// Checks the length of a text and removes its control characters, which could affect a terminal. An empty text becomes
/// None.
fn plain(name: &'static str, text: Option<String>, most: usize) -> Result<Option<String>, BadMarker> {
    let Some(text) = text else { return Ok(None) };
    if text.len() > most {
        return Err(BadMarker::Long(name, most));
    }
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

impl NewMarker {
    /// Converts its times to a clock that is `shift` milliseconds behind. Invalid times stay, and are refused later.
    pub fn set_back(&mut self, shift: i64) {
        for time in [&mut self.t, &mut self.end].into_iter().flatten() {
            if let Some(t) = time.ms() {
                *time = MarkerTime::Seconds(t.saturating_sub(shift) as f64 / 1_000.0);
            }
        }
    }

    /// Whether it names a process or a kernel of the machine.
    pub fn names_process(&self) -> bool {
        self.pid.is_some() || self.kernel.is_some() || self.phase.is_some() || self.by.is_some()
    }

    /// Its time, and the stored marker. `now` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`BadMarker`].
    pub fn checked(self, sender: MarkerSender, now: i64) -> Result<(i64, Marker), BadMarker> {
        let kind = self.kind.unwrap_or_else(|| "note".into());
        if !KINDS.contains(&kind.as_str()) {
            return Err(BadMarker::Kind);
        }
        let kernel = match self.kernel {
            Some(id) if !is_kernel(&id) => return Err(BadMarker::Kernel),
            Some(id) => Some(id.to_ascii_lowercase()),
            None => sender.kernel,
        };
        if self.run.as_ref().is_some_and(|run| check_id(run).is_err()) {
            return Err(BadMarker::Run);
        }
        let ms = |when: &MarkerTime| when.ms().filter(|t| *t <= now + MAX_AHEAD_MS).ok_or(BadMarker::Time);
        let t = self.t.as_ref().map_or(Ok(now), ms)?;
        let end = self.end.as_ref().map(ms).transpose()?;
        if end.is_some_and(|end| end < t) {
            return Err(BadMarker::End);
        }
        let is_cell = kind == "cell";
        if is_cell != self.phase.is_some() || is_cell && kernel.is_none() {
            return Err(BadMarker::Cell);
        }
        let marker = Marker {
            kernel,
            pid: sender.pid,
            program: plain("program", sender.program, MAX_TEXT_BYTES)?,
            user: plain("user", sender.user, MAX_TEXT_BYTES)?,
            sent_by: plain("sent_by", sender.sent_by, MAX_TEXT_BYTES)?,
            run: self.run,
            rank: self.rank,
            seq: self.seq,
            end: end.map(|end| end as f64 / 1_000.0),
            phase: self.phase,
            by: self.by,
            cell: plain("cell", self.cell, MAX_NAME_BYTES)?,
            n: self.n,
            ok: self.ok,
            error: plain("error", self.error, MAX_NAME_BYTES)?,
            label: plain("label", self.label, MAX_TEXT_BYTES)?,
            text: plain("text", self.text, MAX_TEXT_BYTES)?,
            step: self.step,
            id: plain("id", self.id, MAX_NAME_BYTES)?,
            kind,
            begun: t,
            ..Marker::default()
        };
        if marker.phase.is_none() && marker.text.is_none() && marker.step.is_none() {
            return Err(BadMarker::Empty);
        }
        Ok((t, marker.stamped(self.t.is_some().then_some(t))))
    }
}

/// A kernel's ID as it is stored. Jupyter's servers give a UUID. VS Code, papermill and consoles give names of their own,
/// as `v2-29684vbBr`, in which case counts.
///
/// # Errors
/// A sentence: the text is no ID.
pub fn kernel_id(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if is_kernel(text) {
        return Ok(text.to_ascii_lowercase());
    }
    match (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(fits) {
        true => Ok(text.into()),
        false => Err("kernel is the ID of a kernel: at most 64 letters, digits, - and _".into()),
    }
}

/// Whether a text is a UUID in its usual form.
pub fn is_kernel(id: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    id.len() == 36 && id.bytes().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_kernel_is_what_its_program_gives_it() {
        let uuid = "0A1B2C3D-4e5f-6071-8293-a4b5c6d7e8f9";
        assert_eq!(kernel_id(uuid), Ok(uuid.to_ascii_lowercase()));
        for own in ["v2-29684vbBr", "v31a2b3c4d5e6f7", "tmp9z_x2j", "4711"] {
            assert_eq!(kernel_id(own).as_deref(), Ok(own), "VS Code, papermill and consoles");
        }
        for wrong in ["", "a b", "a/b", "a.json", "\u{e9}", &"a".repeat(65)] {
            assert!(kernel_id(wrong).is_err(), "{wrong}");
        }
    }
}
