//! Chats: every turn sends the whole conversation again.

use super::agenda::{Agenda, Event};
use super::prompt::Segment;
use super::random::{LogNormal, Random, mix};
use super::registry::{Kind, Parameter};
use super::settings::Settings;
use super::source::{Draft, Source};

pub(super) static KIND: Kind = Kind {
    name: "multi_turn",
    doc: "chats behind one system prompt; each turn repeats the conversation so far",
    models: "chat traffic; answers, system prompt and rate after the Mooncake conversation trace (FAST'25: \
             answers p50 350 tokens, first 512-token block shared by all requests but not the second, 3.4 \
             requests/s); turns and pauses are assumptions",
    parameters: &[
        Parameter::rate(3.4),
        Parameter::tokens("system_tokens", 600.0, 0.0, "tokens of the system prompt, shared by all sessions"),
        Parameter::real("turns", 6.0, 1.0, 1000.0, "mean number of turns of a session (geometric)"),
        Parameter::tokens("message_tokens", 600.0, 1.0, "median tokens of a user's message"),
        Parameter::tokens("output_tokens", 350.0, 1.0, "median tokens of an answer"),
        Parameter::real("pause_s", 40.0, 0.0, 1e6, "median pause between a session's turns, in seconds"),
        Parameter::tokens("context_tokens", 131_072.0, 1.0, "a session ends before its prompt exceeds this"),
    ],
    start: |settings, seed| Ok(Box::new(MultiTurn::new(settings, seed))),
};

/// Spread of messages: pasted documents make a long tail (mean about twice the median).
const MESSAGE_SIGMA: f64 = 1.2;
const OUTPUT_SIGMA: f64 = 0.7;
const PAUSE_SIGMA: f64 = 1.1;

#[derive(Debug)]
struct Session {
    number: u64,
    segments: Vec<Segment>,
    tokens: u64,
}

#[derive(Debug)]
struct MultiTurn {
    random: Random,
    agenda: Agenda<Session>,
    started: u64,
    system: Segment,
    again: f64,
    message: LogNormal,
    output: LogNormal,
    pause: LogNormal,
    context_tokens: u64,
}

impl MultiTurn {
    fn new(settings: &Settings, seed: u64) -> Self {
        let turns = settings.get("turns");
        Self {
            random: Random::new(seed, 0),
            agenda: Agenda::new(settings.get("rate_per_s") / turns),
            started: 0,
            system: Segment { content: mix(seed, 1), tokens: settings.tokens("system_tokens") },
            again: 1.0 - 1.0 / turns,
            message: LogNormal::new(settings.get("message_tokens"), MESSAGE_SIGMA),
            output: LogNormal::new(settings.get("output_tokens"), OUTPUT_SIGMA),
            pause: LogNormal::new(settings.get("pause_s"), PAUSE_SIGMA),
            context_tokens: settings.get("context_tokens") as u64,
        }
    }

    fn fresh(&mut self, tokens: u32) -> Segment {
        Segment { content: self.random.bits(), tokens }
    }

    fn start(&mut self) -> Session {
        self.started += 1;
        let message = self.message.tokens(&mut self.random);
        let message = self.fresh(message);
        let tokens = u64::from(self.system.tokens) + u64::from(message.tokens);
        Session { number: self.started, segments: vec![self.system, message], tokens }
    }

    /// Puts the session back with the answer and the next message, or ends it.
    fn go_on(&mut self, now_us: i64, mut session: Session, answer_tokens: u32) {
        if !self.random.chance(self.again) {
            return;
        }
        let message_tokens = self.message.tokens(&mut self.random);
        session.tokens += u64::from(answer_tokens) + u64::from(message_tokens);
        if session.tokens > self.context_tokens {
            return;
        }
        let (answer, message) = (self.fresh(answer_tokens), self.fresh(message_tokens));
        session.segments.extend([answer, message]);
        let pause_us = self.pause.microseconds(&mut self.random);
        self.agenda.wait(now_us.saturating_add(pause_us), session);
    }
}

impl Source for MultiTurn {
    fn next(&mut self, draft: &mut Draft) {
        let (now_us, session) = match self.agenda.next(&mut self.random) {
            Event::Start(now_us) => (now_us, self.start()),
            Event::Back(now_us, session) => (now_us, session),
        };
        draft.arrival_us = now_us;
        draft.segments.extend_from_slice(&session.segments);
        draft.output_tokens = self.output.tokens(&mut self.random);
        draft.session = Some(format!("chat-{}", session.number));
        self.go_on(now_us, session, draft.output_tokens);
    }
}
