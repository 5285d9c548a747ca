/**
 * 300 statements of one user over some months, as an agent would write them down, with what is asked of them later. Lines
 * with one key are about the same: `=` says it in other words, `!` says that it has changed. The rest are distractors: other
 * people and other things in the same words.
 */
export interface Statement {
  key: string;
  kind: "new" | "same" | "changed" | "distractor";
  text: string;
}

const OWN = `
home: The user lives in Hamburg.
home! The user moved to Leipzig.
home= I'm based in Leipzig now.
job: The user works at Brandt Logistics.
job! The user works at Kestrel Robotics.
role: The user works as a data engineer.
role= I work as a data engineer.
role! The user works as a platform engineer.
name: The user's name is Judith Amsel.
name= The user is called Judith Amsel.
birthday: The user's birthday is 14 March.
birthday= My birthday is March 14th.
age: The user is 37 years old.
age! The user is 38 years old.
partner: The user is married to Tomasz.
daughter: The user's daughter is called Mila.
daughter= My daughter's name is Mila.
school: Mila goes to the Waldstrasse primary school.
son: The user's son Jonas was born on 2 June 2019.
dog: The user's dog is called Pepper.
dog! The user's dog is called Biscuit.
cat: The user has a grey cat that sleeps on the printer.
allergy: The user is allergic to hazelnuts.
allergy= I am allergic to hazelnuts.
diet: The user's diet is vegetarian.
diet! The user's diet is vegan.
coffee: The user likes coffee.
coffee! The user no longer likes coffee.
tea: The user drinks green tea in the morning.
color: The user's favourite colour is teal.
color! The user's favorite color is dark red.
food: The user's favourite dish is mushroom risotto.
band: The user's favourite band is Portishead.
book: The user is reading The Left Hand of Darkness.
sport: The user climbs at the boulder hall on Thursdays.
knee: The user injured the left knee while skiing in Davos.
running: The user runs 10 km every Sunday.
running! The user runs 15 km every Sunday.
marathon: The user wants to run the Berlin marathon in 2027.
piano: The user takes piano lessons from Mrs Okafor.
language: The user speaks German, Polish and English.
spanish: The user is learning Spanish with flashcards.
email: The user's email is judith@amsel.example.
email! The user's email address is hello@amsel.example.
phone: The user's phone number is 0341 555 0199.
timezone: The user's timezone is Europe/Berlin.
timezone= My time zone is Europe/Berlin.
bike: The user rides a blue cargo bike to the office.
car: The user sold the old Volvo and owns no automobile.
office: The user goes to the office on Tuesdays and Wednesdays.
standup: The team standup is at 9:15.
standup! The team standup is at 10:00.
manager: The user's manager is Farida Noor.
manager! The user's manager is Piotr Lang.
editor: The user's editor is Neovim.
editor! The user's editor is Zed.
shell: The user uses fish as shell.
shell! The user uses zsh as shell.
os: The user's laptop runs on Fedora.
indent: The user prefers tabs over spaces.
indent! I prefer spaces to tabs.
commits: The user wants commit messages in the imperative mood.
reviews: The user wants pull requests below 400 changed lines.
reviews= The user wants pull requests below 400 changed lines!
tests: The user runs the tests with pnpm vitest before every push.
lang: The user's favourite programming language is Rust.
replies: The user wants short answers without bullet points.
replies= I want short answers without bullet points.
units: The user wants temperatures in Celsius and distances in kilometres.
currency: The user keeps all budgets in euros.
tone: The user dislikes emojis in documents.
dark: The user has poor eyesight and uses large dark terminal fonts.
project: The user leads the Heron project, a scheduler for warehouse robots.
deadline: The Heron deadline is 30 September.
deadline! The Heron deadline is 15 October.
budget: The Heron budget is 80000 euros.
budget! The Heron budget is 95000 euros.
herondb: The Heron database is PostgreSQL.
herondb! The Heron database is CockroachDB.
heronhost: Heron runs on a Hetzner cluster.
heronhost! Heron runs on an OVH cluster.
heronport: The Heron gateway listens on port 7070.
heronport! The Heron gateway listens on port 7443.
heronci: The Heron pipeline takes 12 minutes.
heronci! The Heron pipeline takes 6 minutes.
heronrepo: The Heron source code is in the monorepo under services/heron.
heronlead: Bea Castro designs the Heron user interface.
heronlog: Heron writes its logs to Loki.
heronflag: New Heron features hide behind LaunchDarkly flags.
client: The first customer of Heron is the Nordhafen port authority.
demo: The Nordhafen demo is on 12 November.
demo! The Nordhafen demo is on 26 November.
contract: The contract with Nordhafen was signed by Ms Eriksen.
vpn: The user reaches the Nordhafen network through a WireGuard tunnel.
robots: The warehouse robots are Kiva-style shuttles with lidar.
incident: A night shift outage in May was caused by an expired certificate.
oncall: The user is on call in the first week of each month.
backup: Backups of the robot fleet are kept for 90 days.
backup! Backups of the robot fleet are kept for 30 days.
holiday: The user spends every August on the island of Bornholm.
wedding: The user's wedding anniversary is 21 July.
mother: The user's mother lives in Gdansk.
mother! The user's mother moved to Sopot.
father: The user's father was a lighthouse keeper.
sister: The user's sister Renata is a physician in Krakow.
neighbour: The neighbour Mr Vogel waters the plants when the user is away.
garden: The user grows tomatoes and chillies on the balcony.
solar: The user had solar panels installed on the garage roof.
heating: The flat has a gas heating that is 20 years old.
landlord: The user's landlord is the Elster housing cooperative.
rent: The rent is 1150 euros.
rent! The rent is 1240 euros.
insurance: The user's health insurance is with Techniker.
dentist: The user's dentist is Dr Sommer on Karl-Liebknecht street.
glasses: The user needs new glasses by Christmas.
blood: The user's blood type is A negative.
sleep: The user goes to bed before eleven and switches the phone off.
news: The user reads the Guardian at breakfast.
podcast: The user listens to a podcast about shipwrecks.
chess: The user plays chess online under the nickname rookdove.
choir: The user sings alto in the Thomas choir.
camera: The user takes photographs with an old Leica.
film: The user's favourite film is Stalker.
flight: The user flies to Lisbon for a conference in February.
talk: The user gives a talk about fleet scheduling in Lisbon.
hotel: In Lisbon the user stays in a guesthouse in Alfama.
visa: The user's passport expires in April 2028.
train: The user has a BahnCard 50.
train! The user has a BahnCard 100.
savings: The user puts 300 euros a month into an index fund.
savings! The user puts 450 euros a month into an index fund.
bank: The user's bank is GLS.
tax: Mr Haller prepares the user's tax return.
gift: Tomasz wishes for a torque wrench for his birthday.
recipe: The user bakes sourdough with 20 percent rye flour.
spice: The user cannot stand coriander.
wine: The user drinks no alcohol during the week.
volunteer: The user teaches refugees to repair bicycles on Saturdays.
party: The user votes in the works council.
kindle: The user reads novels on a Kobo reader.
pins: The user collects enamel pins of lighthouses.
phobia: The user is afraid of moths.
password: The user keeps passwords in Bitwarden.
notes: The user writes notes in Markdown with one sentence a line.
calendar: The user shares a calendar named Amsels with the family.
musicroom: The user practises the piano with headphones after eight.
`;

/** Other people and things, in the words of the user's own. */
const COLLEAGUES = [
  ["Arun", "Dresden", "espresso", "badminton", "tortoise", "November", "Emacs"],
  ["Bea", "Valencia", "cocoa", "fencing", "parrot", "May", "Helix"],
  ["Chidi", "Lagos", "black tea", "football", "goldfish", "January", "Sublime Text"],
  ["Dorota", "Poznan", "mate", "archery", "rabbit", "August", "IntelliJ"],
  ["Elif", "Izmir", "ayran", "rowing", "canary", "December", "Visual Studio Code"],
  ["Goran", "Zagreb", "lemonade", "judo", "ferret", "February", "Nano"],
  ["Hana", "Brno", "kefir", "curling", "hedgehog", "October", "Kakoune"],
  ["Ivo", "Plovdiv", "cider", "surfing", "gecko", "April", "Xcode"],
] as const;
const SERVERS = [
  ["Falcon", "Dublin", "5432", "Debian", "Arun"],
  ["Osprey", "Frankfurt", "6379", "Alpine", "Dorota"],
  ["Plover", "Oregon", "9200", "Ubuntu", "Chidi"],
  ["Sparrow", "Mumbai", "8123", "NixOS", "Elif"],
  ["Wren", "Montreal", "4222", "Rocky Linux", "Goran"],
] as const;

function lines(): Statement[] {
  const out: Statement[] = [];
  for (const line of OWN.trim().split("\n")) {
    const [, key, sign, text] = /^(\w+)([:=!]) (.*)$/.exec(line) as RegExpExecArray;
    const kind = sign === "=" ? "same" : sign === "!" ? "changed" : "new";
    out.push({ key: key as string, kind, text: text as string });
  }
  const add = (key: string, text: string) => out.push({ key, kind: "distractor", text });
  for (const [name, city, drink, sport, pet, month, editor] of COLLEAGUES) {
    add(`${name} home`, `${name} lives in ${city}.`);
    add(`${name} drink`, `${name} drinks ${drink} in the morning.`);
    add(`${name} sport`, `${name} does ${sport} on Thursdays.`);
    add(`${name} pet`, `${name} has a ${pet} as a pet.`);
    add(`${name} holiday`, `${name} takes a holiday every ${month}.`);
    add(`${name} editor`, `${name}'s editor is ${editor}.`);
    add(
      `${name} oncall`,
      `${name} is on call in the ${month === "May" ? "second" : "third"} week of the month.`,
    );
    add(`${name} answers`, `${name} wants long answers with many examples.`);
    add(`${name} allergy`, `${name} is allergic to ${drink === "cocoa" ? "pollen" : "dust"}.`);
    add(`${name} bike`, `${name} rides a racing bike to the ${sport} club.`);
  }
  for (const [name, region, port, os, owner] of SERVERS) {
    add(`${name} region`, `The ${name} server is located in ${region}.`);
    add(`${name} port`, `The ${name} server listens on port ${port}.`);
    add(`${name} os`, `The ${name} server has ${os} as its operating system.`);
    add(`${name} owner`, `${owner} maintains the ${name} server.`);
    add(`${name} deadline`, `The ${name} deadline is ${Number(port) % 28} May.`);
    add(`${name} budget`, `The ${name} budget is ${port}0 euros.`);
  }
  const invoices = 300 - out.length;
  for (let at = 0; at < invoices; at++)
    add(`invoice ${at}`, `Invoice ${4100 + at} went to ${COLLEAGUES[at % 8]?.[1]} and was paid in cash.`);
  return out;
}

export const STATEMENTS: readonly Statement[] = lines();

/** A question, and the keys of what answers it. */
export const QUESTIONS: readonly (readonly [question: string, ...keys: string[]])[] = [
  ["Where does the user live?", "home"],
  ["Which city is the user's home?", "home"],
  ["Who employs the user?", "job"],
  ["What is the user's profession?", "role"],
  ["What is the user called?", "name"],
  ["When was the user born?", "birthday"],
  ["How old is the user?", "age"],
  ["Who is the user's husband?", "partner"],
  ["name of the user's girl", "daughter"],
  ["Which school does Mila attend?", "school"],
  ["When is Jonas's birthday?", "son"],
  ["What is the dog called?", "dog"],
  ["Does the user own a cat?", "cat"],
  ["Which nuts must the user avoid?", "allergy"],
  ["allergies of the user", "allergy"],
  ["Does the user eat meat?", "diet"],
  ["diet", "diet"],
  ["Would the user enjoy coffee?", "coffee"],
  ["What does the user have in the morning?", "tea"],
  ["favorite colour", "color"],
  ["What should we cook for the user?", "food"],
  ["favourite music group", "band"],
  ["Which novel is the user reading?", "book"],
  ["When does the user go climbing?", "sport"],
  ["knee injuries", "knee"],
  ["How far does the user run on Sundays?", "running"],
  ["plans for a marathon", "marathon"],
  ["Who teaches the user the piano?", "piano"],
  ["Which languages does the user speak?", "language"],
  ["Is the user learning a language?", "spanish", "language"],
  ["How can I write the user a mail?", "email"],
  ["telephone number", "phone"],
  ["What is the user's time zone?", "timezone"],
  ["How does the user get to the office?", "bike"],
  ["Does the user drive a car?", "car"],
  ["On which days is the user in the office?", "office"],
  ["When is the standup?", "standup"],
  ["Who is the user's boss?", "manager"],
  ["Which text editor does the user use?", "editor"],
  ["Which shell?", "shell"],
  ["operating system of the laptop", "os"],
  ["tabs or spaces?", "indent"],
  ["How should commit messages be written?", "commits"],
  ["How large may a pull request be?", "reviews"],
  ["How are tests run?", "tests"],
  ["favourite programming language", "lang"],
  ["How long should answers be?", "replies"],
  ["Celsius or Fahrenheit?", "units"],
  ["In which currency are budgets?", "currency"],
  ["emojis in documents", "tone"],
  ["Which project does the user lead?", "project"],
  ["When is the deadline of Heron?", "deadline"],
  ["How much money does Heron have?", "budget"],
  ["Which database does Heron use?", "herondb"],
  ["Where is Heron hosted?", "heronhost"],
  ["port of the Heron gateway", "heronport"],
  ["How long does the Heron pipeline take?", "heronci"],
  ["Where is the source of Heron?", "heronrepo"],
  ["Who designs the interface of Heron?", "heronlead"],
  ["Where are the logs of Heron?", "heronlog"],
  ["feature flags", "heronflag"],
  ["first customer of Heron", "client"],
  ["When is the Nordhafen demo?", "demo"],
  ["Who signed the contract?", "contract"],
  ["How do I reach the Nordhafen network?", "vpn"],
  ["What caused the outage in May?", "incident"],
  ["When is the user on call?", "oncall"],
  ["How long are backups kept?", "backup"],
  ["Where does the user go on vacation?", "holiday"],
  ["wedding anniversary", "wedding"],
  ["Where does the user's mother live?", "mother"],
  ["What did the father do for a living?", "father"],
  ["Which relative is a doctor?", "sister"],
  ["Who waters the plants?", "neighbour"],
  ["vegetables on the balcony", "garden"],
  ["solar panels", "solar"],
  ["How much is the rent?", "rent"],
  ["health insurance", "insurance"],
  ["dentist", "dentist"],
  ["blood group", "blood"],
  ["nickname for chess", "chess"],
  ["Which voice does the user sing in the choir?", "choir"],
  ["What does the user take pictures with?", "camera"],
  ["favourite movie", "film"],
  ["Where does the user stay in Lisbon?", "hotel", "flight", "talk"],
  ["What is the talk in Lisbon about?", "talk"],
  ["When does the passport expire?", "visa"],
  ["railway card", "train"],
  ["monthly savings", "savings"],
  ["Who does the taxes?", "tax"],
  ["present for Tomasz", "gift"],
  ["sourdough flour", "recipe"],
  ["Which herb does the user hate?", "spice"],
  ["What is the user afraid of?", "phobia"],
  ["password manager", "password"],
  ["family calendar", "calendar"],
  ["Where does Arun live?", "Arun home"],
  ["Who has a parrot?", "Bea pet"],
  ["port of the Wren server", "Wren port"],
  ["Who maintains Osprey?", "Osprey owner"],
];

/** How a conversation begins, and the keys of what may help in it. Without keys nothing does. */
export const OPENINGS: readonly (readonly [opening: string, ...keys: string[]])[] = [
  [
    "Plan a dinner for my birthday, please. What could I cook?",
    "birthday",
    "food",
    "diet",
    "allergy",
    "spice",
  ],
  ["Write a commit message for this change to the parser.", "commits"],
  ["The Heron gateway does not answer. Which port was it?", "heronport"],
  ["I need a slide for the Nordhafen demo with the date on it.", "demo", "client", "contract", "vpn"],
  ["Book me a dentist appointment.", "dentist"],
  ["What should I pack for Lisbon?", "flight", "talk", "hotel"],
  ["Make a training plan for the marathon.", "marathon", "running", "knee"],
  ["Set up my shell and my editor on a new laptop.", "shell", "editor", "os"],
  ["How do I format this file, with tabs or with spaces?", "indent"],
  ["Find a present for Tomasz.", "gift", "partner"],
  ["When can we meet for the standup this week?", "standup", "office"],
  ["Is the Heron budget enough for two more robots?", "budget", "robots", "project", "deadline"],
  ["Draft a mail to my manager about the backups.", "manager", "backup", "email"],
  ["What do I have to tell the landlord about the rent?", "landlord", "rent"],
  ["Suggest a film for tonight.", "film"],
  ["Which trains go to my mother's?", "mother", "train"],
  ["Sharpen the sourdough recipe.", "recipe"],
  [
    "Who should look at the Osprey server?",
    "Osprey owner",
    "Osprey os",
    "Osprey port",
    "Osprey region",
    "Osprey deadline",
    "Osprey budget",
  ],
  ["What is the square root of 1764?"],
  ["Translate 'good morning' into Japanese."],
  ["Explain the difference between TCP and UDP."],
  ["Write a haiku about snow."],
  ["Convert this JSON to YAML."],
  ["Why is the sky blue?"],
  ["Refactor this function so that it does not mutate its argument."],
  ["Summarise the French Revolution in three sentences."],
];
