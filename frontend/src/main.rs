//! Starts the page.

fn main() {
    leptos::mount::mount_to_body(frontend::app::App);
}
