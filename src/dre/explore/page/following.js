// Following a training: a script beside the page brings the latest frame every second, and the points move to it.
const ASK_MS = 1000; // from one question to the next
const SILENT_MS = 20000; // without news: then the program was killed, or sleeps
const OLD_MS = 60000; // of the first news
const LOST = 3; // questions without an answer, after which the page has been replaced
const MOVE_LIMITS_MS = [250, 2500]; // of the movement from one frame to the next
const told = { count: -1, at: 0, lost: 0, frame: -1, frameAt: 0 };
let flight = 0; // the movement on the screen

// Coordinates of a frame: as they are, and in a unit square around most points.
function decodeFrame({ low, high, center, side, values }) {
  const integers = new Uint16Array(bytesOfBase64(values).buffer), axes = low.length, original = [], shown = [];
  for (let axis = 0; axis < axes; axis++) {
    const from = low[axis], step = (high[axis] - low[axis]) / 65535, own = new Float32Array(n), placed = new Float32Array(n);
    for (let i = 0; i < n; i++) {
      own[i] = from + integers[axis * n + i] * step;
      placed[i] = (own[i] - center[axis]) / side + 0.5;
    }
    original.push(own);
    shown.push(placed);
  }
  const named = ([x, y, z = null]) => ({ x, y, z });
  return { ...named(shown), original: named(original) };
}

const copied = ({ x, y, z }) => ({ x: x.slice(), y: y.slice(), z: z && z.slice() });

// Moves the points from where they are on the screen to a frame, for about as long as the next one takes to come.
function flyTo(goal, milliseconds) {
  const map = maps[0], from = copied(map.placed), at = copied(map.placed), began = performance.now(), own = ++flight;
  stages[0] = goal;
  map.coordinates = goal;
  decodedStages.set("0,0", Promise.resolve(goal));
  const arrive = () => {
    map.place(goal);
    if (map.view.isHome) map.fitView();
    if (pinned >= 0) showPinned();
  };
  if (matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden) return arrive();
  const step = (time) => {
    if (own !== flight) return;
    const share = Math.min(1, Math.max(0, (time - began) / milliseconds));
    if (share === 1) return arrive();
    for (const axis of from.z ? ["x", "y", "z"] : ["x", "y"]) {
      const values = at[axis], start = from[axis], end = goal[axis];
      for (let i = 0; i < n; i++) values[i] = start[i] + (end[i] - start[i]) * share;
    }
    map.place(at);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

function showFrame(frame) {
  if (frame.number === told.frame || !maps[0].placed) return;
  const now = performance.now(), [least, most] = MOVE_LIMITS_MS;
  const since = told.frameAt ? now - told.frameAt : least;
  const isNext = told.frame >= 0;
  Object.assign(told, { frame: frame.number, frameAt: now });
  maps[0].canvas.dataset.frame = String(frame.number); // for scripts that wait for a frame
  flyTo(decodeFrame(frame), isNext ? Math.max(least, Math.min(most, since)) : least);
}

function receive(message) {
  const now = Date.now(), isNews = message.count !== told.count;
  if (isNews) Object.assign(told, { count: message.count, at: told.count < 0 && now - message.time * 1000 > OLD_MS ? message.time * 1000 : now });
  told.lost = 0;
  const silent = now - told.at;
  const isFinishing = message.state === "finishing";
  if (silent > SILENT_MS) showState("no news", `for ${Math.round(silent / 1000)} s: was the program killed?`, "silent");
  else if (isFinishing) showState("trained", "the page of the map is being made", "finishing");
  else showState("training", message.stage, "training");
  document.title = `${silent > SILENT_MS ? "" : "● "}${about.title}`;
  if (!isNews) return;
  $("training-stage").textContent = `Map: ${message.stage}`; // a frame is made now and then, and the training goes on meanwhile
  $("training-doing").textContent = isFinishing || !message.doing ? "" : `Now: ${message.doing}`;
  showLosses(message.losses);
  if (message.frame) showFrame(message.frame);
}

// The script is gone when the page has been replaced by that of the map.
function lost() {
  told.lost++;
  if (told.count >= 0 && told.lost >= LOST) location.reload();
  else if (told.count < 0) showState("no news", "the script beside this page is missing: the training has ended, or the page was moved", "silent");
}

function ask() {
  const script = make("script", { src: `${about.follow}?${Date.now()}` });
  const after = (action) => () => {
    script.remove();
    if (action) action();
    setTimeout(ask, ASK_MS);
  };
  script.addEventListener("load", after(null));
  script.addEventListener("error", after(lost));
  document.head.append(script);
}

function follow() {
  showTraining();
  showState("training", "", "training");
  window.dreTraining = receive;
  ask();
}

follow();
