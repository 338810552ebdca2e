//! `[sharing]`: share links of a hub, and the names that its viewers see.

use settings::table;

table! {
    /// `[sharing]`: what people without an account, and viewers, see.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SharingSettings {
        /// Whether teams may have share links; `false` also closes existing ones
        links: bool = true, text(settings::value::switch);
        /// Whether viewers and share links see the names of users and of people
        user_names: bool = true, text(settings::value::switch);
    }
}
