//! Tables of what is a secret and what is none, and laws.

use epitome_loop::RawJson;
use proptest::prelude::*;

use super::SecretKind::{
    AssignedSecret, ChatToken, CloudKey, CodeToken, HeaderCredential, Jwt, PrivateKey, ProviderKey,
    UrlPassword,
};
use super::*;

/// Texts with one secret between `{` and `}`, and its kind. A secret of another text never stands in them.
const SECRETS: &[(&str, SecretKind)] = &[
    ("use «sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL» here", ProviderKey),
    ("«sk-proj-AbC_123-dEfGhIjKlMnOpQrStUvWxYz0123456789»", ProviderKey),
    ("key=«sk-0123456789abcdef0123456789abcdef».", ProviderKey),
    ("\"«sk-ant-api03-AbCdEfGh01234567_89-AbCdEfGhIjKl»\"", ProviderKey),
    ("OPENROUTER=«sk-or-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef»", ProviderKey),
    ("(«AIzaSyA-0123456789_abcdefghijklmnopqrst»)", ProviderKey),
    ("said\\n«sk-ant-api03-AbCdEfGh01234567»\\n", ProviderKey),
    ("«gsk_0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijAB»", ProviderKey),
    ("«hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567»", ProviderKey),
    ("«sk_live_0123456789abcdefABCDEF»", ProviderKey),
    ("id «AKIAIOSFODNN7EXAMPLE», region", CloudKey),
    ("«ASIAIOSFODNN7EXAMPLE»", CloudKey),
    ("git clone https://«ghp_0123456789abcdefghijABCDEFGHIJ012345»@github.com/a/b", CodeToken),
    ("«github_pat_11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz»", CodeToken),
    ("«glpat-0123456789abcdefghij»", CodeToken),
    ("«npm_0123456789abcdefghijABCDEFGHIJ012345»", CodeToken),
    ("«xoxb-123456789012-1234567890123-AbCdEfGhIjKl»", ChatToken),
    ("«xapp-1-A0123456789-0123456789-abcdef»", ChatToken),
    ("«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U»", Jwt),
    ("Authorization: Bearer «abcDEF123456-._~+/=»", HeaderCredential),
    ("curl -H 'authorization: bearer «0123456789abcdef»'", HeaderCredential),
    ("Authorization: Basic «dXNlcjpwYXNzd29yZA==»", HeaderCredential),
    ("postgres://user:«p!a$s»@host:5432/db?x=y", UrlPassword),
    ("https://u:«a@b»@example.com", UrlPassword),
    ("redis://:«hunter2»@10.0.0.1", UrlPassword),
    ("see https://token:«abc12345»@host/x", UrlPassword),
    ("password=«hunter2»", AssignedSecret),
    ("password: «hunter2», next", AssignedSecret),
    ("Password = \"«correct!»\"", AssignedSecret),
    ("\"password\": \"«letmein»\"", AssignedSecret),
    ("{\\\"password\\\": \\\"«letmein»\\\"}", AssignedSecret),
    ("'db_password' => '«s3cret»'", AssignedSecret),
    ("DB_PASSWORD=«letmein»", AssignedSecret),
    ("[db]\npassword=«letmein»\nuser=me", AssignedSecret),
    ("export MY_SECRET='«with\\'quote»'", AssignedSecret),
    ("Server=x;Uid=sa;Pwd=«Tr0ub4dor»;", AssignedSecret),
    ("api_key: «0123456789abcdef0123456789abcdef»", AssignedSecret),
    ("apiKey = \"«abc12345def»\"", AssignedSecret),
    ("X-Api-Key: «abcd1234efgh»", AssignedSecret),
    ("https://h/p?access_token=«abc12345»&x=y", AssignedSecret),
    ("aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY12»", AssignedSecret),
    ("AccountKey=«Zm9vYmFyMTIzNDU2Nzg5MA==»;EndpointSuffix", AssignedSecret),
    ("passphrase: \"«correct horse battery»\"", AssignedSecret),
    ("config['token'] = '«abc12345»'", AssignedSecret),
    ("-----BEGIN RSA", PrivateKey),
];

/// A block with a key, as files hold it.
const BLOCK: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nAAAAAAAAABAAAAMwAAAA==\n-----END OPENSSH PRIVATE KEY-----";

/// Texts without secrets.
const PLAIN: &[&str] = &[
    "",
    "commit 5a2c685e1f0b4c7d9a8b7c6d5e4f3a2b1c0d9e8f of main",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 123e4567-e89b-12d3-a456-426614174000, call_AbCdEfGh0123456789, toolu_01AbCdEfGhIjKlMnOpQrStUv",
    "msg_01XFDUDYJgAACzvnptvVoYEL chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    "pip install sk-learn-contrib-some-very-long-package-name-2024",
    "class sk-button-primary-large-0123 task-0123456789abcdef0123456789",
    "disk-0123456789abcdef0123456789abcdef",
    "AKIA is a prefix; AKIAIOSFODNN7EXAMPLELONGER is no id, akiaiosfodnn7example neither",
    "eyJhbGciOiJIUzI1NiJ9 alone, eyJ.eyJ.x",
    "the bearer of this letter, Bearer authentication, bearer token required",
    "Basic auth is off; Basic usage: see below",
    "https://example.com:8080/path@v1?x=a:b http://[::1]:8080/ git@github.com:a/b.git ssh://git@host:22/x",
    "https://user:${PASSWORD}@host https://u:[redacted:url_password]@h",
    "mailto:someone@example.com time 12:30@noon",
    "fn login(password: &str, token: String, secret: Option<Secret>) -> Result<(), Error>",
    "password: String, token: u64, secret: bool",
    "let token = self.next_token()?; let token = tokens[3]; token == other.token2",
    "password = get_password(); password=password, token=token; pwd=args.pwd2",
    "password = os.environ[\"DB_PASS\"]; apiKey: process.env.OPENAI_API_KEY2",
    "PASSWORD=$DB_PASSWORD1 password={{ vault.password1 }} password: <your password 1>",
    "password: null, \"token\": \"string\", \"password\": \"password\", secret: None",
    "PWD=/srv/project2/src OLDPWD=/home/user1",
    "max_tokens: 4096, input_tokens=123, tokenizer=o200k_base, next_token: 50256, \"eos_token\": \"</s>\"",
    "secretName: my-app-secret, secret: my-app-secret, keyboard: qwerty12345678",
    "the password: it must have 8 characters. Token: a piece of a word.",
    "\"password\": \"must be at least 8 characters\"",
    "-----BEGIN CERTIFICATE-----\nMIIB0123456789\n-----END CERTIFICATE-----",
    "text.starts_with(\"-----BEGIN PRIVATE KEY-----\") && text.ends_with(\"-----END PRIVATE KEY-----\")",
    "pub const STABLE_SECRET: WIN32_ERROR = 1; TrafficSecret => \"TRAFFIC_SECRET_0\", password=some_name\n, secret=none",
    "-----BEGIN PUBLIC KEY-----\nMFkw0123456789\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0123456789abcdefghijklmnopqrstuvwxyz user@host",
    "crate::token::Kind token::secret=x std::secret::a1b2c3d4e5f6",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA/AKIAIOSFODNN7EXAMPLE/AIzaSyA0123456789abcdefghijklmnopqrstu+/",
    "const ghp_prefix = 1; xoxb-short; glpat-; hf_transfer; npm_config_registry; pypi-mirror",
    "Schl\u{fc}ssel \u{1f511} password\u{ff1a} \u{5bc6}\u{7801}",
];

fn redacted(text: &str) -> String {
    redact(text).text.unwrap_or_else(|| text.to_owned())
}

#[test]
fn each_kind_is_found_whole_and_nothing_else_is() {
    for (marked, kind) in SECRETS {
        if *kind == PrivateKey {
            continue;
        }
        let text = marked.replace(['\u{ab}', '\u{bb}'], "");
        let (before, rest) = marked.split_once('\u{ab}').unwrap();
        let (_, after) = rest.split_once('\u{bb}').unwrap();
        let found = redact(&text);
        assert_eq!(found.text.as_deref(), Some(&*format!("{before}{}{after}", kind.mark())), "{text}");
        assert_eq!((found.counts.total(), found.counts.of(*kind)), (1, 1), "{text}");
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in PLAIN {
        assert_eq!(redact(text).text, None, "{text}");
        assert_eq!(redact(text).counts, RedactionCounts::default());
    }
}

#[test]
fn private_keys_are_found_whole_quoted_and_cut() {
    let mark = PrivateKey.mark();
    assert_eq!(redacted(&format!("a {BLOCK} b")), format!("a {mark} b"));
    assert_eq!(redacted(&BLOCK.replace('\n', "\\n")), mark);
    let (cut, _) = BLOCK.split_once("\n-----END").unwrap();
    assert_eq!(redacted(&format!("{cut}\nand then prose")), format!("{mark}\nand then prose"));
    assert_eq!(redacted(cut), mark);
    assert_eq!(redacted(&format!("{cut}\n{BLOCK}")), format!("{mark}\n{mark}"));
    let old =
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0F\n\nMII+/=\n(cut)";
    assert_eq!(redacted(old), format!("{mark}\n(cut)"));
    let pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----";
    assert_eq!(redacted(pgp), mark);
}

#[test]
fn json_stays_json_and_names_of_fields_count() {
    let mut counts = RedactionCounts::default();
    let mut clean = |text: &str| {
        redact_json(&RawJson::parse(text).unwrap(), &mut counts).map(|json| json.as_str().to_owned())
    };
    let given =
        r#" {"cmd": "echo \"hi\"", "n": [1, {"password" : "a\"b c" }, "x\u0073k-ant-"], "token":"e" } "#;
    assert_eq!(clean(given), None);
    let given = r#"{"a":"\u0073k-ant-api03-0123456789abcdef","password":"p\"ss","\u0070assword":"p4ss"}"#;
    let wanted = r#"{"a":"[redacted:provider_key]","password":"[redacted:assigned_secret]","\u0070assword":"[redacted:assigned_secret]"}"#;
    assert_eq!(clean(given).as_deref(), Some(wanted));
    assert_eq!(clean(wanted), None);
    assert_eq!(
        clean(r#""\ud800 sk-ant-api03-0123456789abcdef""#).unwrap(),
        r#""\\ud800 [redacted:provider_key]""#
    );
    assert_eq!(counts.total(), 4);
}

/// Hostile texts take no longer than their length allows.
#[test]
fn hostile_texts_take_linear_time() {
    for piece in [
        "sk-",
        "eyJ-",
        "eyJ.",
        "token:",
        "token=\"",
        "password='",
        "://",
        "a:b@",
        "-----BEGIN PRIVATE KEY-----",
        "-",
        ":",
        "=",
        "bearer ",
        "base64,",
        "secret=\\\"",
        "xoxb-1",
        "://u:p",
        "password=\\",
        "-----BEGIN RSA PRIVATE KEY-----\nA",
    ] {
        let time = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            let start = std::time::Instant::now();
            let _ = redact(&text);
            start.elapsed()
        };
        let (small, large) = (time(25_000), time(400_000));
        // Quadratic would be 256 times as long.
        assert!(
            large < small * 80 + std::time::Duration::from_millis(300),
            "{piece}: {small:?} and {large:?}"
        );
    }
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    let secrets: Vec<String> = SECRETS
        .iter()
        .filter(|(_, kind)| *kind != PrivateKey)
        .map(|(text, _)| text.replace(['\u{ab}', '\u{bb}'], ""))
        .collect();
    let piece = prop_oneof![
        3 => prop::sample::select(secrets),
        1 => Just(BLOCK.to_owned()),
        2 => prop::sample::select(PLAIN.to_vec()).prop_map(str::to_owned),
        4 => "[ -~\n\u{e9}\u{1f511}]{0,12}",
        3 => "(sk-|ghp_|AKIA|eyJ|token|password|secret|bearer |://|u:p|@|=|:|\"|'|\\\\|[a-z0-9]{1,20}|-----BEGIN PRIVATE KEY-----|\\[redacted:jwt\\]|base64,| |\n){1,12}",
    ];
    prop::collection::vec(piece, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_second_time_changes_nothing(pieces in pieces(), glue in "( |\n|)") {
        let once = redacted(&pieces.join(&glue));
        prop_assert_eq!(redact(&once).text, None, "{}", once);
    }

    #[test]
    fn it_grows_by_marks_alone(pieces in pieces()) {
        let text = pieces.join(" ");
        let found = redact(&text);
        let longest = SecretKind::ALL.iter().map(|kind| kind.mark().len()).max().unwrap() as u64;
        let length = found.text.as_ref().map_or(text.len(), String::len) as u64;
        prop_assert!(length <= text.len() as u64 + found.counts.total() * longest);
    }

    #[test]
    fn canaries_are_gone_and_what_is_around_them_stays(
        before in "[a-z ,.\n\u{e9}]{0,40}",
        after in "[a-z ,.\n\u{e9}]{0,40}",
        which in 0..SECRETS.len() - 1,
    ) {
        let (marked, kind) = SECRETS[which];
        let (head, rest) = marked.split_once('\u{ab}').unwrap();
        let (secret, tail) = rest.split_once('\u{bb}').unwrap();
        let text = format!("{before}\n{head}{secret}{tail}\n{after}");
        let mark = kind.mark();
        prop_assert_eq!(redacted(&text), format!("{before}\n{head}{mark}{tail}\n{after}"));
    }

    #[test]
    fn any_text_is_taken(text in "\\PC{0,200}") {
        let _ = redact(&text);
    }
}

#[test]
fn a_key_behind_an_escape_is_a_key() {
    let key = "sk-ant-api03-canary0123456789";
    let mark = SecretKind::ProviderKey.mark();
    for before in [
        "\u{1b}[33m",
        "[33m",
        "[0;1;31m",
        "\u{1b}[K",
        "\u{1b}[m",
        "[2K",
        "\\n",
        "\\t",
        "\\u003d",
        "\\u001b[1m",
        "%3D",
        "q=%20",
    ] {
        let text = format!("a {before}{key}\u{1b}[0m b");
        assert_eq!(redact(&text).text, Some(format!("a {before}{mark}\u{1b}[0m b")), "{before:?}");
    }
    for word in ["task-", "[task-", "[ask-", "x[1]task-", "m", "33m", "%3", "\\u03d"] {
        let text = format!("{word}sk-ant-api03-canary0123456789");
        assert_eq!(
            redact(&text).text.is_some(),
            !word.ends_with(|last: char| last.is_ascii_alphanumeric()),
            "{word}"
        );
    }
}

#[test]
fn what_users_paste_is_found() {
    for (text, secret) in [
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
        ("aws_secret_access_key = /Jalr4UtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
        ("DB_PASS=abc12345", "abc12345"),
        ("SECRET_KEY_BASE=3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c", "3f9a8b7c"),
        ("OPENAI_KEY=abcd1234efgh5678", "abcd1234"),
        ("{\"api_key\":\"xrlgqnbqrmktsxfvy6pl\"}", "xrlgqn"),
        ("{\"Authorization\": \"Basic dXNlcjpwYXNzd29yZDEyMw==\"}", "dXNlcjpw"),
        ("Authorization: Token 9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b", "9944b091"),
        ("docker login --password hunter22x reg", "hunter22x"),
        ("tool --api-key abcd1234efgh5678 run", "abcd1234"),
        ("git clone https://a1b2c3d4e5f6a7b8c9d0e1f2@example.com/r.git", "a1b2c3d4"),
        ("GOCSPX-abcdefgh12345678ijklmnop", "abcdefgh1234"),
        ("whsec_abcdefgh12345678ijklmnop", "abcdefgh1234"),
        ("xoxc-1234567890-abcdefgh", "1234567890"),
        ("AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN54K", "QQPZRY9X"),
    ] {
        let shown = redact(text).text.unwrap_or_else(|| text.to_owned());
        assert!(!shown.contains(secret), "{shown}");
    }
    for innocent in [
        "cat /etc/passwd:root",
        "token: TokenKindOfTheParser",
        "run --password-file secrets.txt now",
        "--token is needed",
        "https://user-name-of-a-person@example.com",
        "see Authorization: token based access",
        "api_key: the_key_of_the_application",
        "secretKey: userProvidedSecretKey",
    ] {
        assert_eq!(redact(innocent).text, None, "{innocent}");
    }
}
