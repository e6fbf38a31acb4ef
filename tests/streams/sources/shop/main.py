import hashlib
import threading
from tools import parse

def walk(tree):
    for child in tree:
        walk(child)
    return hashlib.sha256(b"<&>").hexdigest()

async def serve(queue):
    async for item in queue:
        await item

def main():
    workers = [threading.Thread(target=parse) for _ in range(2)]
    for worker in workers:
        worker.start()
    walk(["naïve"])
    for worker in workers:
        worker.join()
    input()

if __name__ == "__main__":
    main()
