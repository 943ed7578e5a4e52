// The stages of the training: points move from one map to the next, and a table shows how the scores change.
const MOVE_MS = 200; // from one stage to another
const stages = []; // coordinates of the first map after each stage, once decoded
const decodedStages = new Map(); // "map,stage" → promise of coordinates
let between = null; // coordinates between two stages
let position = 0; // an integer at a stage, a fraction between two
let animation = null, playback = 0;

function stageOf(source, stage) {
  const key = `${source},${stage}`;
  if (!decodedStages.has(key)) decodedStages.set(key, decodeCoordinates(source, stage));
  return decodedStages.get(key);
}

function setPosition(value) {
  position = Math.max(0, Math.min(stages.length - 1, value));
  const from = stages[Math.floor(position)], to = stages[Math.ceil(position)], share = position - Math.floor(position);
  maps[0].coordinates = stages[Math.round(position)];
  showCard(-1, maps[0]);
  maps[0].place(share ? mix(from, to, share) : from);
}

function mix(from, to, share) {
  between = between || { x: new Float32Array(n), y: new Float32Array(n), z: from.z ? new Float32Array(n) : null };
  for (const axis of from.z ? ["x", "y", "z"] : ["x", "y"]) {
    const values = between[axis], start = from[axis], end = to[axis];
    for (let i = 0; i < n; i++) values[i] = start[i] * (1 - share) + end[i] * share;
  }
  return between;
}

function showStage() {
  const shown = Math.round(position), { title, scores } = about.maps[0].stages[shown];
  $("slider").value = String(position);
  $("slider").setAttribute("aria-valuetext", title);
  $("stage-title").textContent = title;
  maps[0].canvas.dataset.stage = String(position);
  $("scores").replaceChildren(...scores.map(([name, value], k) => scoreRow(name, value, shown ? about.maps[0].stages[shown - 1].scores[k] : null)));
}

function scoreRow(name, value, previous) {
  const difference = previous ? value - previous[1] : 0, sign = difference < 0 ? "−" : "+";
  const change = previous ? make("td", { title: "change since the previous stage" }, sign + Math.abs(difference).toFixed(3)) : make("td");
  return make("tr", {}, make("th", {}, name), make("td", { class: "value" }, value.toFixed(3)), change);
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
      if (share < 1) {
        animation = requestAnimationFrame(step);
      } else {
        showCaptions();
        stageArrived();
        stateChanged();
        arrived();
      }
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

const currentStage = () => Math.round(position);

// Decodes the stage that is shown first, the last one unless another is wanted, and shows it.
async function startMaps({ stage }) {
  stages.length = about.maps[0].stages.length;
  const shown = stage === null ? stages.length - 1 : stage;
  stages[shown] = await stageOf(0, shown);
  setPosition(shown);
  resizeMaps();
  showStage();
  maps.forEach(listenToPointer);
}

async function restOfMaps() {
  for (let k = 0; k < stages.length; k++) if (!stages[k]) stages[k] = await stageOf(0, k);
}

function listenToStages() {
  $("play").addEventListener("click", play);
  $("slider").addEventListener("input", (event) => {
    playback++;
    stopAnimation();
    setPosition(Number(event.target.value));
    showStage();
  });
  $("slider").addEventListener("change", () => goToStage(Math.round(position)));
  $("slider").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    goToStage(Math.max(0, Math.min(stages.length - 1, currentStage() + step)));
  });
}
