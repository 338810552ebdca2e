//! What somebody may have meant by a word that is not known.

/// `; did you mean ...?`, or all that is known when nothing is near.
pub fn nearest(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|k| (distance(word, k), k)).min().filter(|(d, k)| *d <= 1 + k.len() / 3);
    match near {
        Some((_, near)) => format!("; did you mean {near}?"),
        None => format!("; known are {}", known.join(", ")),
    }
}

/// Edit distance: letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
