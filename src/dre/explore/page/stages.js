// The stages of the training: points move from one map to the next, and a table shows how the scores change.
const MOVE_MS = 200; // from one stage to another
const stages = [];
const between = { x: null, y: null }; // coordinates between two stages
let position = 0; // an integer at a stage, a fraction between two
let animation = null, playback = 0;

function setPosition(value) {
  position = Math.max(0, Math.min(stages.length - 1, value));
  const from = stages[Math.floor(position)], to = stages[Math.ceil(position)], share = position - Math.floor(position);
  maps[0].coordinates = stages[Math.round(position)];
  if (share) {
    between.x = between.x || new Float32Array(n);
    between.y = between.y || new Float32Array(n);
    for (let i = 0; i < n; i++) {
      between.x[i] = from.x[i] * (1 - share) + to.x[i] * share;
      between.y[i] = from.y[i] * (1 - share) + to.y[i] * share;
    }
  }
  const current = share ? between : from;
  showCard(-1, maps[0]);
  maps[0].setNow(current.x, current.y);
}

function showStage() {
  const shown = Math.round(position), { title, scores } = about.stages[shown];
  $("slider").value = String(position);
  $("slider").setAttribute("aria-valuetext", title);
  $("stage-title").textContent = title;
  maps[0].canvas.dataset.stage = String(position);
  $("scores").replaceChildren(...scores.map(([name, value], k) => scoreRow(name, value, shown ? about.stages[shown - 1].scores[k] : null)));
}

function scoreRow(name, value, previous) {
  const row = document.createElement("tr"), head = document.createElement("th");
  const number = document.createElement("td"), change = document.createElement("td");
  head.textContent = name;
  number.className = "value";
  number.textContent = value.toFixed(3);
  if (previous) {
    const difference = value - previous[1];
    change.textContent = `${difference < 0 ? "−" : "+"}${Math.abs(difference).toFixed(3)}`;
    change.title = "change since the previous stage";
  }
  row.append(head, number, change);
  return row;
}

function stopAnimation() {
  cancelAnimationFrame(animation);
}

function goToStage(goal, milliseconds = MOVE_MS) {
  const from = position, reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const began = performance.now();
  stopAnimation();
  return new Promise((arrived) => {
    const step = (time) => {
      const share = reducedMotion ? 1 : Math.min(1, Math.max(0, (time - began) / milliseconds));
      const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) * (1 - share);
      setPosition(share === 1 ? goal : from + (goal - from) * eased);
      showStage();
      if (share < 1) animation = requestAnimationFrame(step);
      else arrived();
    };
    animation = requestAnimationFrame(step);
  });
}

async function play() {
  const own = ++playback; // pressing play again, or moving the slider, ends this playback
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  if (position === stages.length - 1) await goToStage(0);
  while (own === playback && position < stages.length - 1) {
    await pause(600);
    if (own === playback) await goToStage(Math.floor(position) + 1, 900);
  }
}
