//! Coding agents: long sessions that grow step by step, compact, and start sub-agents.

use super::agenda::{Agenda, Event};
use super::prompt::Segment;
use super::random::{LogNormal, Random, mix};
use super::registry::{Kind, Parameter};
use super::settings::Settings;
use super::source::{Draft, Source};
use crate::error::{Error, Result};

pub(super) static KIND: Kind = Kind {
    name: "agent",
    doc: "long agent sessions: each step extends the context, with compaction and sub-agents",
    models: "coding agents; steps per session, pauses, answers, tools and system prompt after the WEKA \
             kv-cache-tester traces (710 sessions, 49,334 requests: 69.5 requests per session, pauses p50 18 s \
             and p90 130 s, answers p50 216 tokens, tools and system prompt 13 to 15 thousand tokens, \
             sub-agents 1.4 % of requests)",
    parameters: &[
        Parameter::rate(1.0),
        Parameter::tokens("system_tokens", 14_000.0, 0.0, "tokens of tools and system prompt, shared by all"),
        Parameter::real("steps", 69.5, 1.0, 1000.0, "mean number of steps of a session (geometric)"),
        Parameter::tokens("step_tokens", 1200.0, 1.0, "median tokens a step adds (tool results, messages)"),
        Parameter::tokens("output_tokens", 216.0, 1.0, "median tokens of an answer"),
        Parameter::real("pause_s", 18.0, 0.0, 1e6, "median pause between a session's steps, in seconds"),
        Parameter::tokens(
            "context_tokens",
            200_000.0,
            1.0,
            "a context beyond this is compacted to a summary",
        ),
        Parameter::tokens("summary_tokens", 4000.0, 1.0, "median tokens of a summary"),
        Parameter::real("subagent_share", 0.003, 0.0, 1.0, "share of steps that start a sub-agent"),
        Parameter::real(
            "subagent_steps",
            5.0,
            1.0,
            1000.0,
            "mean number of steps of a sub-agent (geometric)",
        ),
        Parameter::tokens("subagent_system_tokens", 3000.0, 0.0, "tokens of all sub-agents' system prompt"),
    ],
    start: |settings, seed| Ok(Box::new(Agent::new(settings, seed)?)),
};

const STEP_SIGMA: f64 = 1.0;
const OUTPUT_SIGMA: f64 = 1.0;
/// From the pauses' quantiles: ln(130 s / 18 s) / 1.2816, the normal quantile of 90 %.
const PAUSE_SIGMA: f64 = 1.54;
const SUMMARY_SIGMA: f64 = 0.4;

#[derive(Debug)]
struct Context {
    name: String,
    system: Segment,
    segments: Vec<Segment>,
    tokens: u64,
    subagents: u64,
    /// The session that waits for this sub-agent.
    caller: Option<Box<Context>>,
}

#[derive(Debug)]
struct Agent {
    random: Random,
    agenda: Agenda<Context>,
    started: u64,
    system: Segment,
    subagent_system: Segment,
    again: f64,
    subagent_again: f64,
    subagent_share: f64,
    step: LogNormal,
    output: LogNormal,
    pause: LogNormal,
    summary: LogNormal,
    context_tokens: u64,
}

impl Agent {
    fn new(settings: &Settings, seed: u64) -> Result<Self> {
        let system = Segment { content: mix(seed, 1), tokens: settings.tokens("system_tokens") };
        let context_tokens = settings.tokens("context_tokens");
        if context_tokens <= system.tokens {
            return Err(Error::config(
                format!("context_tokens is {context_tokens}, system_tokens {}", system.tokens),
                "context_tokens must be larger than system_tokens",
            ));
        }
        let (steps, share) = (settings.get("steps"), settings.get("subagent_share"));
        // A session's requests are its own steps and, for the share that starts one, those of sub-agents.
        let requests = steps * (1.0 + share * settings.get("subagent_steps"));
        Ok(Self {
            random: Random::new(seed, 0),
            agenda: Agenda::new(settings.get("rate_per_s") / requests),
            started: 0,
            system,
            subagent_system: Segment {
                content: mix(seed, 2),
                tokens: settings.tokens("subagent_system_tokens"),
            },
            again: 1.0 - 1.0 / steps,
            subagent_again: 1.0 - 1.0 / settings.get("subagent_steps"),
            subagent_share: share,
            step: LogNormal::new(settings.get("step_tokens"), STEP_SIGMA),
            output: LogNormal::new(settings.get("output_tokens"), OUTPUT_SIGMA),
            pause: LogNormal::new(settings.get("pause_s"), PAUSE_SIGMA),
            summary: LogNormal::new(settings.get("summary_tokens"), SUMMARY_SIGMA),
            context_tokens: u64::from(context_tokens),
        })
    }

    fn context(&mut self, name: String, system: Segment, caller: Option<Box<Context>>) -> Context {
        let mut context = Context { name, system, segments: vec![system], tokens: 0, subagents: 0, caller };
        context.tokens = u64::from(system.tokens);
        let first = self.step.tokens(&mut self.random);
        self.extend(&mut context, first);
        context
    }

    fn extend(&mut self, context: &mut Context, tokens: u32) {
        context.segments.push(Segment { content: self.random.bits(), tokens });
        context.tokens += u64::from(tokens);
    }

    /// Adds a step; a context that grows too long starts over behind a summary of it.
    fn step(&mut self, context: &mut Context, answer_tokens: u32) {
        self.extend(context, answer_tokens);
        let tokens = self.step.tokens(&mut self.random);
        if context.tokens + u64::from(tokens) > self.context_tokens {
            context.segments.truncate(1);
            context.tokens = u64::from(context.system.tokens);
            let summary = self.summary.tokens(&mut self.random);
            self.extend(context, summary);
        }
        self.extend(context, tokens);
    }

    /// What follows a request: a sub-agent, the next step, or the end (and then the caller's next step).
    fn go_on(&mut self, now_us: i64, mut context: Context, answer_tokens: u32) {
        let pause_us = self.pause.microseconds(&mut self.random);
        let is_sub = context.caller.is_some();
        let again = if is_sub { self.subagent_again } else { self.again };
        if !self.random.chance(again) {
            if let Some(mut caller) = context.caller.take() {
                self.step(&mut caller, answer_tokens);
                self.agenda.wait(now_us.saturating_add(pause_us), *caller);
            }
            return;
        }
        if !is_sub && self.random.chance(self.subagent_share) {
            // The caller's own answer is the call of the sub-agent; it steps on once that one ends.
            self.extend(&mut context, answer_tokens);
            context.subagents += 1;
            let name = format!("{}.{}", context.name, context.subagents);
            let sub = self.context(name, self.subagent_system, Some(Box::new(context)));
            self.agenda.wait(now_us.saturating_add(pause_us), sub);
            return;
        }
        self.step(&mut context, answer_tokens);
        self.agenda.wait(now_us.saturating_add(pause_us), context);
    }
}

impl Source for Agent {
    fn next(&mut self, draft: &mut Draft) {
        let (now_us, context) = match self.agenda.next(&mut self.random) {
            Event::Back(now_us, context) => (now_us, context),
            Event::Start(now_us) => {
                self.started += 1;
                let name = format!("agent-{}", self.started);
                (now_us, self.context(name, self.system, None))
            }
        };
        draft.arrival_us = now_us;
        draft.segments.extend_from_slice(&context.segments);
        draft.output_tokens = self.output.tokens(&mut self.random);
        draft.session = Some(context.name.clone());
        draft.parent = context.caller.as_ref().map(|caller| caller.name.clone());
        self.go_on(now_us, context, draft.output_tokens);
    }
}
