//! Samples that a response lacks because its machine has not sent them yet: a member of the response, and a header.

use crate::export::{Ask, fitting, text};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use stream::live::Reader;

/// The header: begin and end in seconds since the Unix epoch, `FROM/TO`, separated by commas.
const HEADER: HeaderName = HeaderName::from_static("x-watchglass-holes");
/// Maximum number of holes of one response; above it the closest ones are merged.
const MAX_HOLES: usize = 64;

/// Spans within that of a query in which any of its machines lacks samples, rising; milliseconds since the Unix epoch.
pub(in crate::http) fn holes(reader: &Reader, ask: &Ask) -> Vec<(i64, i64)> {
    // The query itself refuses patterns without a match.
    let sources = fitting(&reader.sources(), &ask.sources).unwrap_or_default();
    let lacking = sources.iter().flat_map(|source| reader.live().source(source.id).figures().holes);
    let within = lacking.map(|(from, to)| (from.max(ask.from), to.min(ask.to))).filter(|(from, to)| from <= to);
    joined(within.collect())
}

/// Merges holes that overlap, then those that are closest to each other, until the limit holds.
fn joined(mut holes: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    holes.sort_unstable();
    holes.dedup_by(|next, hole| {
        let overlap = next.0 <= hole.1;
        hole.1 = if overlap { hole.1.max(next.1) } else { hole.1 };
        overlap
    });
    if holes.len() > MAX_HOLES {
        let mut apart: Vec<i64> = holes.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
        let joins = holes.len() - MAX_HOLES;
        let (_, most, _) = apart.select_nth_unstable(joins - 1);
        let most = *most;
        holes.dedup_by(|next, hole| {
            let near = next.0 - hole.1 <= most;
            hole.1 = if near { next.1 } else { hole.1 };
            near
        });
    }
    holes
}

/// Writes the header; none without holes.
pub(in crate::http) fn tell(headers: &mut HeaderMap, holes: &[(i64, i64)]) {
    let mut words = String::new();
    for (from, to) in holes {
        words.push_str(if words.is_empty() { "" } else { "," });
        text::seconds(&mut words, *from);
        words.push('/');
        text::seconds(&mut words, *to);
    }
    if let (false, Ok(value)) = (holes.is_empty(), HeaderValue::try_from(words)) {
        headers.insert(HEADER, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_that_overlap_are_one_and_there_are_few() {
        assert_eq!(joined(vec![(50, 60), (10, 20), (15, 30), (31, 40)]), [(10, 30), (31, 40), (50, 60)]);
        let many: Vec<(i64, i64)> = (0..1_000).map(|n| (n * n, n * n + 1)).collect();
        let few = joined(many.clone());
        assert!(few.len() <= MAX_HOLES && few.len() > 1, "{}", few.len());
        assert!(many.iter().all(|hole| few.iter().any(|wide| wide.0 <= hole.0 && hole.1 <= wide.1)));
    }

    #[test]
    fn the_header_is_there_where_something_lacks() {
        let mut headers = HeaderMap::new();
        tell(&mut headers, &[]);
        assert!(headers.is_empty());
        tell(&mut headers, &[(1_000, 2_500), (9_000, 9_000)]);
        assert_eq!(headers[HEADER], "1/2.5,9/9");
    }
}
