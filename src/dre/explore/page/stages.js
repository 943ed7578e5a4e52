// The stages of the training: points move from one to the next, and the scores beside them say what that gave.
const MOVE = 200; // milliseconds from a stage to another
const stages = [];
let at = 0; // a whole number at a stage, else between two
let moving = null, playing = 0;

function setPlaces(position) {
  at = Math.max(0, Math.min(stages.length - 1, position));
  const from = stages[Math.floor(at)], to = stages[Math.ceil(at)], share = at - Math.floor(at);
  if (!share) {
    now.x = from.x;
    now.y = from.y;
  } else {
    if (!setPlaces.x) {
      setPlaces.x = new Float32Array(n);
      setPlaces.y = new Float32Array(n);
    }
    const rest = 1 - share;
    for (let i = 0; i < n; i++) {
      setPlaces.x[i] = from.x[i] * rest + to.x[i] * share;
      setPlaces.y[i] = from.y[i] * rest + to.y[i] * share;
    }
    now.x = setPlaces.x;
    now.y = setPlaces.y;
  }
  moved();
  showCard(-1);
  redraw();
}

function showStage() {
  const shown = Math.round(at), { title, scores } = about.stages[shown], rowsOf = [];
  $("slider").value = String(at);
  $("slider").setAttribute("aria-valuetext", title);
  $("stage-title").textContent = title;
  canvas.dataset.stage = String(at);
  scores.forEach(([name, value], which) => {
    const line = document.createElement("tr"), head = document.createElement("th"), number = document.createElement("td");
    const change = document.createElement("td"), before = shown ? about.stages[shown - 1].scores[which] : null;
    head.textContent = name;
    number.className = "now";
    number.textContent = value.toFixed(3);
    if (before) {
      const by = value - before[1];
      change.textContent = `${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(3)}`;
      change.title = "since the stage before";
    }
    line.append(head, number, change);
    rowsOf.push(line);
  });
  $("scores").replaceChildren(...rowsOf);
}

// Whoever moves the slider has it: what was under way ends where it is.
function stop() {
  cancelAnimationFrame(moving);
}

function goToStage(goal, milliseconds = MOVE) {
  const from = at, still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const began = performance.now();
  stop();
  return new Promise((arrived) => {
    const step = (time) => {
      const share = still ? 1 : Math.min(1, Math.max(0, (time - began) / milliseconds));
      const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) * (1 - share);
      setPlaces(share === 1 ? goal : from + (goal - from) * eased);
      showStage();
      if (share < 1) moving = requestAnimationFrame(step);
      else arrived();
    };
    moving = requestAnimationFrame(step);
  });
}

async function play() {
  const turn = ++playing; // another press, or a hand on the slider, takes over
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  if (at === stages.length - 1) await goToStage(0);
  while (turn === playing && at < stages.length - 1) {
    await pause(600);
    if (turn === playing) await goToStage(Math.floor(at) + 1, 900);
  }
}
