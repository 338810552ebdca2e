//! Pages for a content security policy without style attributes.

/// Turns the alignment of table cells, which mdBook writes as style attributes, into classes.
pub fn page(html: &str) -> String {
    ["left", "center", "right"].iter().fold(html.to_owned(), |html, side| {
        html.replace(&format!(" style=\"text-align: {side}\""), &format!(" class=\"to-{side}\""))
    })
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn cells_keep_their_alignment() {
        assert_eq!(page("<td style=\"text-align: right\">1</td><td>2</td>"), "<td class=\"to-right\">1</td><td>2</td>");
    }
}
