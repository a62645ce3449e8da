// How the page asks the service: with the token that came behind the '#' of its address, kept for this tab only.
const KEY = "fsr-token";

export function takeToken() {
  const given = location.hash.slice(1);
  if (given && !given.startsWith("/")) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", "#/jobs");
  }
  return sessionStorage.getItem(KEY);
}

function headers(more = {}) {
  return { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}`, ...more };
}

export async function ask(path, method = "GET", body = undefined) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const kind = body === undefined ? {} : { "Content-Type": "application/json" };
  const answer = await fetch(path, { method, headers: headers(kind), ...sent });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error ?? `status ${answer.status}`);
  return told;
}

// Server-sent events over fetch: EventSource cannot send the token.
export function listen(heard, connected) {
  const ending = new AbortController();
  let last = "";
  const once = async () => {
    const more = last ? { "Last-Event-ID": last } : {};
    const answer = await fetch("api/events", { headers: headers(more), signal: ending.signal });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    connected(true);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
        if (fields.id) last = fields.id;
        if (fields.data) heard(JSON.parse(fields.data));
      }
    }
  };
  const forever = async () => {
    while (!ending.signal.aborted) {
      try {
        await once();
      } catch {
        // the service is away for a moment; it is asked again
      }
      if (ending.signal.aborted) return;
      connected(false);
      await new Promise((wake) => setTimeout(wake, 1500));
    }
  };
  forever();
  return () => ending.abort();
}
