//! An error and all its causes as one text. It never shortens and never redacts: whoever shows the
//! text decides who may see it.

use std::error::Error;

/// Each error of the chain in its own words, the outermost first.
pub fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the file cannot be read")]
    struct Unread {
        #[source]
        source: io::Error,
    }

    #[test]
    fn causes_follow_what_they_caused() {
        let error = Unread { source: io::Error::other("the disk is gone") };
        assert_eq!(told(&error), "the file cannot be read: the disk is gone");
        assert_eq!(told(&io::Error::other("alone")), "alone");
    }
}
