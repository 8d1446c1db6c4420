//! The table behind [`model_info`](crate::model_info): published figures, as they stood at [`AS_OF`].
//!
//! They come from the makers where those pages could be read. For some models of 2026 they come from gateways that
//! resell them, and a figure no page gives is taken from the maker's model before: correct such a row when the
//! maker says otherwise.

use crate::encoding::Encoding::{self, Cl100kBase, O200kBase};
use crate::fit::Fit;
use crate::media::{ImageRule, MediaRules};
use crate::models::Exactness::{self, Fitted, Published, TokenizerOnly};
use crate::models::{Family, ModelEntry};

/// When the entries were last gathered.
pub(crate) const AS_OF: &str = "2026-11";

const CLAUDE: Exactness = Fitted(Fit::Claude);
const CLAUDE_NEW: Exactness = Fitted(Fit::ClaudeNew);
const UNPUBLISHED: Exactness = Fitted(Fit::Unpublished);

const NO_AUDIO_FIGURE: u32 = MediaRules::CONSERVATIVE.audio_per_ten_seconds;
const NO_VIDEO_FIGURE: u32 = MediaRules::CONSERVATIVE.video_per_ten_seconds;

const fn openai(image: ImageRule) -> MediaRules {
    // Sound in a request: one token for 100 ms. A page of a PDF is sent as its text and as a small picture.
    MediaRules {
        image,
        audio_per_ten_seconds: 100,
        document_page: 220,
        video_per_ten_seconds: NO_VIDEO_FIGURE,
    }
}

const fn tiles(base: u32, tile: u32) -> MediaRules {
    openai(ImageRule::Tiles { base, tile })
}

const fn patches(percent: u32) -> MediaRules {
    openai(ImageRule::Patches { side: 32, most: 1_536, long_edge: 2_048, percent })
}

/// `original` detail, the most that can be asked for, takes up to 10 000 patches.
const OPENAI_ORIGINAL: MediaRules =
    openai(ImageRule::Patches { side: 32, most: 10_000, long_edge: 6_000, percent: 120 });

const fn claude_media(most: u32, long_edge: u32) -> MediaRules {
    MediaRules {
        image: ImageRule::Patches { side: 28, most, long_edge, percent: 100 },
        audio_per_ten_seconds: NO_AUDIO_FIGURE,
        // The page's picture, and what comes with it.
        document_page: 1_200 + most,
        video_per_ten_seconds: NO_VIDEO_FIGURE,
    }
}

pub(crate) const CLAUDE_MEDIA: MediaRules = claude_media(1_568, 1_568);
const CLAUDE_SHARP: MediaRules = claude_media(4_784, 2_576);

const GEMINI_2: MediaRules = gemini_media(ImageRule::GeminiTiles, 258, 2_900);
pub(crate) const GEMINI_3: MediaRules = gemini_media(ImageRule::Flat { tokens: 1_120 }, 560, 910);

/// Gemini takes a picture of each second of a film, and its sound.
const fn gemini_media(image: ImageRule, document_page: u32, video_per_ten_seconds: u32) -> MediaRules {
    MediaRules { image, audio_per_ten_seconds: 320, document_page, video_per_ten_seconds }
}

const fn gpt(
    name: &'static str,
    exactness: Exactness,
    encoding: Encoding,
    limits: [u64; 3],
    media: MediaRules,
) -> ModelEntry {
    entry("openai", Family::OpenAi, name, encoding, exactness, limits, media)
}

const fn claude(
    name: &'static str,
    exactness: Exactness,
    window: u64,
    output: u64,
    media: MediaRules,
) -> ModelEntry {
    entry("anthropic", Family::Anthropic, name, O200kBase, exactness, [window, 0, output], media)
}

/// Claude before Opus 4.5 forgets the reasoning of earlier turns.
const fn forgetful_claude(name: &'static str, output: u64) -> ModelEntry {
    ModelEntry { keeps_reasoning: false, ..claude(name, CLAUDE, 200_000, output, CLAUDE_MEDIA) }
}

const fn gemini(name: &'static str, output: u64, media: MediaRules) -> ModelEntry {
    let limits = [1_048_576, 1_048_576, output];
    entry("google", Family::Gemini, name, O200kBase, Fitted(Fit::Gemini), limits, media)
}

const fn open(provider: &'static str, name: &'static str, window: u64) -> ModelEntry {
    entry(provider, Family::Other, name, O200kBase, UNPUBLISHED, [window, 0, 0], MediaRules::CONSERVATIVE)
}

const fn entry(
    provider: &'static str,
    family: Family,
    name: &'static str,
    encoding: Encoding,
    exactness: Exactness,
    [window, max_input, max_output]: [u64; 3],
    media: MediaRules,
) -> ModelEntry {
    // OpenAI drops the reasoning of earlier turns; of others it is safer to assume that they keep it.
    let keeps_reasoning = !matches!(family, Family::OpenAi);
    ModelEntry {
        provider,
        name,
        family,
        encoding,
        exactness,
        window,
        max_input,
        max_output,
        media,
        keeps_reasoning,
    }
}

const M1: u64 = 1_000_000;
const GPT_41: [u64; 3] = [1_047_576, 0, 32_768];
const GPT_5: [u64; 3] = [400_000, 272_000, 128_000];
const GPT_54: [u64; 3] = [1_050_000, 922_000, 128_000];
const O_SERIES: [u64; 3] = [200_000, 0, 100_000];

pub(crate) const MODELS: &[ModelEntry] = &[
    gpt("gpt-6.2-sol", UNPUBLISHED, O200kBase, GPT_54, OPENAI_ORIGINAL),
    gpt("gpt-5.6-sol", TokenizerOnly, O200kBase, GPT_54, OPENAI_ORIGINAL),
    gpt("gpt-5.6-terra", TokenizerOnly, O200kBase, GPT_54, OPENAI_ORIGINAL),
    gpt("gpt-5.6-luna", TokenizerOnly, O200kBase, GPT_54, OPENAI_ORIGINAL),
    gpt("gpt-5.5", TokenizerOnly, O200kBase, GPT_54, OPENAI_ORIGINAL),
    gpt("gpt-5.4", TokenizerOnly, O200kBase, GPT_54, OPENAI_ORIGINAL),
    gpt("gpt-5.4-mini", TokenizerOnly, O200kBase, GPT_5, patches(162)),
    gpt("gpt-5.4-nano", TokenizerOnly, O200kBase, GPT_5, patches(246)),
    gpt("gpt-5.3-codex", TokenizerOnly, O200kBase, GPT_5, patches(120)),
    gpt("gpt-5.2", TokenizerOnly, O200kBase, GPT_5, patches(120)),
    gpt("gpt-5.2-codex", TokenizerOnly, O200kBase, GPT_5, patches(120)),
    gpt("gpt-5.1", TokenizerOnly, O200kBase, GPT_5, tiles(70, 140)),
    gpt("gpt-5.1-codex", TokenizerOnly, O200kBase, GPT_5, tiles(70, 140)),
    gpt("gpt-5.1-codex-max", TokenizerOnly, O200kBase, GPT_5, tiles(70, 140)),
    gpt("gpt-5", TokenizerOnly, O200kBase, GPT_5, tiles(70, 140)),
    gpt("gpt-5-codex", TokenizerOnly, O200kBase, GPT_5, tiles(70, 140)),
    gpt("gpt-5-mini", TokenizerOnly, O200kBase, GPT_5, patches(162)),
    gpt("gpt-5-nano", TokenizerOnly, O200kBase, GPT_5, patches(246)),
    gpt("gpt-5-chat", TokenizerOnly, O200kBase, [128_000, 0, 16_384], tiles(70, 140)),
    gpt("gpt-4.1", TokenizerOnly, O200kBase, GPT_41, tiles(85, 170)),
    gpt("gpt-4.1-mini", TokenizerOnly, O200kBase, GPT_41, patches(162)),
    gpt("gpt-4.1-nano", TokenizerOnly, O200kBase, GPT_41, patches(246)),
    gpt("o4-mini", TokenizerOnly, O200kBase, O_SERIES, patches(172)),
    gpt("o3", TokenizerOnly, O200kBase, O_SERIES, tiles(75, 150)),
    gpt("o3-mini", TokenizerOnly, O200kBase, O_SERIES, tiles(75, 150)),
    gpt("o1", TokenizerOnly, O200kBase, O_SERIES, tiles(75, 150)),
    gpt("gpt-4o", Published, O200kBase, [128_000, 0, 16_384], tiles(85, 170)),
    gpt("gpt-4o-mini", Published, O200kBase, [128_000, 0, 16_384], tiles(2_833, 5_667)),
    gpt("gpt-4o-audio-preview", TokenizerOnly, O200kBase, [128_000, 0, 16_384], tiles(85, 170)),
    gpt("gpt-4o-mini-audio-preview", TokenizerOnly, O200kBase, [128_000, 0, 16_384], tiles(85, 170)),
    gpt("chatgpt-4o", TokenizerOnly, O200kBase, [128_000, 0, 16_384], tiles(85, 170)),
    gpt("gpt-4-turbo", Published, Cl100kBase, [128_000, 0, 4_096], tiles(85, 170)),
    gpt("gpt-4-0125-preview", Published, Cl100kBase, [128_000, 0, 4_096], tiles(85, 170)),
    gpt("gpt-4-1106-preview", Published, Cl100kBase, [128_000, 0, 4_096], tiles(85, 170)),
    gpt("gpt-4", Published, Cl100kBase, [8_192, 0, 8_192], tiles(85, 170)),
    gpt("gpt-3.5-turbo", Published, Cl100kBase, [16_385, 0, 4_096], tiles(85, 170)),
    gpt("gpt-oss-120b", TokenizerOnly, O200kBase, [131_072, 0, 0], MediaRules::CONSERVATIVE),
    gpt("gpt-oss-20b", TokenizerOnly, O200kBase, [131_072, 0, 0], MediaRules::CONSERVATIVE),
    claude("claude-fable-5-2", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-fable-5-1", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-fable-5", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-opus-5-5", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-sonnet-5-5", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-haiku-5-5", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-opus-5", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-sonnet-5", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-opus-4-8", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-opus-4-7", CLAUDE_NEW, M1, 128_000, CLAUDE_SHARP),
    claude("claude-opus-4-6", CLAUDE, M1, 128_000, CLAUDE_MEDIA),
    claude("claude-sonnet-4-6", CLAUDE, M1, 128_000, CLAUDE_MEDIA),
    claude("claude-opus-4-5", CLAUDE, 200_000, 64_000, CLAUDE_MEDIA),
    forgetful_claude("claude-sonnet-4-5", 64_000),
    forgetful_claude("claude-haiku-4-5", 64_000),
    forgetful_claude("claude-opus-4-1", 32_000),
    forgetful_claude("claude-opus-4", 32_000),
    forgetful_claude("claude-sonnet-4", 64_000),
    forgetful_claude("claude-3-7-sonnet", 64_000),
    forgetful_claude("claude-3-5-sonnet", 8_192),
    forgetful_claude("claude-3-5-haiku", 8_192),
    forgetful_claude("claude-3-haiku", 4_096),
    gemini("gemini-3.5-flash", 65_536, GEMINI_3),
    gemini("gemini-3-pro", 65_536, GEMINI_3),
    gemini("gemini-3-flash", 65_536, GEMINI_3),
    gemini("gemini-3.1-pro", 65_536, GEMINI_3),
    gemini("gemini-2.5-pro", 65_536, GEMINI_2),
    gemini("gemini-2.5-flash", 65_536, GEMINI_2),
    gemini("gemini-2.5-flash-lite", 65_536, GEMINI_2),
    gemini("gemini-2.0-flash", 8_192, GEMINI_2),
    open("deepseek", "deepseek-v4-pro", M1),
    open("deepseek", "deepseek-flash", M1),
    open("xai", "grok-4", 256_000),
    open("meta", "llama-3.3-70b-instruct", 131_072),
    open("meta", "llama-3.1-70b-instruct", 131_072),
    open("meta", "llama-3.1-8b-instruct", 131_072),
];
