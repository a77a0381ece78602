//! The OpenAI-compatible wire: chat completions, streamed.
//! It knows no address and no key; `endpoint` does.

mod answer; // chunks to events
mod chunk; // the wire's own types
mod request; // the body

use self::answer::Answer;
use self::request::{Dialect, LengthField, Marks, ThinkingField};
use super::ModelRequest;
use super::wire::{self, Wire};
use crate::config::{ProviderConfig, ProviderKind};

const OPENAI_HOST: &str = "api.openai.com";

#[derive(Debug)]
pub(super) struct Completions {
    dialect: Dialect,
}

impl Completions {
    /// The wire as the servers of this provider speak it.
    pub(super) fn of(config: &ProviderConfig) -> Self {
        let plain = Dialect {
            length: LengthField::MaxTokens,
            thinking: ThinkingField::ReasoningEffort,
            marks: Marks::Never,
        };
        let dialect = match config.kind {
            ProviderKind::Openai if is_openai(config.base_url.as_deref()) => {
                Dialect { length: LengthField::MaxCompletionTokens, ..plain }
            }
            ProviderKind::Azure => Dialect { length: LengthField::ByModel, ..plain },
            ProviderKind::Openrouter => {
                let marks = if config.prompt_caching { Marks::WhereWanted } else { Marks::Never };
                Dialect { thinking: ThinkingField::Reasoning, marks, ..plain }
            }
            ProviderKind::Openai
            | ProviderKind::Ollama
            | ProviderKind::Vllm
            | ProviderKind::Anthropic
            | ProviderKind::Demo
            | ProviderKind::Script => plain,
        };
        Self { dialect }
    }
}

/// Whether OpenAI itself is asked, and not one of the many that speak like it.
fn is_openai(base_url: Option<&str>) -> bool {
    let host = |url: &str| {
        let uri: http::Uri = url.parse().ok()?;
        Some(uri.host()?.eq_ignore_ascii_case(OPENAI_HOST))
    };
    base_url.is_none_or(|url| host(url).unwrap_or(false))
}

impl Wire for Completions {
    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request, self.dialect)
    }

    fn answer(&self) -> Box<dyn wire::Answer> {
        Box::new(Answer::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_bounded_in_the_words_of_the_server() {
        let of = |kind, base_url: Option<&str>| {
            let base_url = base_url.map(str::to_owned);
            Completions::of(&ProviderConfig { base_url, ..ProviderConfig::of(kind) }).dialect.length
        };
        assert_eq!(of(ProviderKind::Openai, None), LengthField::MaxCompletionTokens);
        let itself = Some("https://api.openai.com/v1/");
        assert_eq!(of(ProviderKind::Openai, itself), LengthField::MaxCompletionTokens);
        assert_eq!(of(ProviderKind::Openai, Some("https://other/v1")), LengthField::MaxTokens);
        assert_eq!(of(ProviderKind::Azure, None), LengthField::ByModel);
        assert_eq!(of(ProviderKind::Ollama, None), LengthField::MaxTokens);
    }
}
