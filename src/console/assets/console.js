// Brings the page up to date every few seconds, until somebody pauses it. Without this, load the page again.
"use strict";

const EVERY_MS = 5_000;
const live = document.getElementById("live");
const pause = document.getElementById("pause");
const state = document.getElementById("state");
let isPaused = false;

// Nothing moves under a hand, a cursor or a selection.
function isInUse() {
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && live.contains(selection.anchorNode);
  return isSelected || live.contains(document.activeElement);
}

async function refresh() {
  if (isPaused || document.hidden || isInUse()) return;
  try {
    const answer = await fetch(location.pathname, { signal: AbortSignal.timeout(2 * EVERY_MS) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (isPaused || isInUse()) return;
    live.replaceChildren(...page.getElementById("live").childNodes);
    say(`Up to date every ${EVERY_MS / 1_000} seconds.`);
  } catch {
    say("retryd does not answer: what stands below is old.");
  }
}

// Only what is new: a screen reader reads it out.
function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

async function refreshForEver() {
  await refresh();
  setTimeout(refreshForEver, EVERY_MS);
}

pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  say(isPaused ? "Paused." : `Up to date every ${EVERY_MS / 1_000} seconds.`);
});
document.getElementById("refresh").hidden = false;
say(`Up to date every ${EVERY_MS / 1_000} seconds.`);
setTimeout(refreshForEver, EVERY_MS);
